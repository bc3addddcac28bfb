// find_in_file: words in one text as it is in the editor.

import { digestOf } from '../../digest';
import { wrong } from '../../refusal';
import { faultOf, find } from '../../search/words';
import type { Call } from '../../verbs';
import { MOST_MATCHES, USUAL_MATCHES } from './place';

export async function find_in_file(call: Call): Promise<object> {
  const path = call.args.text('path');
  const words = call.args.text('text');
  const ignoresCase = call.args.flag('ignore_case');
  const limit = call.args.number('limit', 1, MOST_MATCHES) ?? USUAL_MATCHES;
  call.args.done();
  const fault = faultOf(words);
  if (fault !== undefined) throw wrong(`\`text\` ${fault}`);
  const text = await call.desk.texts.open(await call.desk.roots.file(path));
  const content = text.document.getText();
  const { hits, isCut } = find(content, words, ignoresCase, limit);
  return {
    path: text.path,
    version: text.version,
    digest: digestOf(content),
    matches: hits.map(({ range, line_text }) => ({ range, line_text })),
    is_complete: !isCut,
  };
}
