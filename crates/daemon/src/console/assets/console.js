// Fills a page of the console, keeps it up to date, and sends what the person decides. What is on a page is made by the
// daemon: here is no markup, only the patching of it.
'use strict';

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
const meta = (name) => $(`meta[name="${name}"]`)?.content ?? '';

const page = meta('prism-page');
const main = $('#main');
const dialog = $('#dialog');

// --- The door ---

// What opens the console is in this origin's own storage, and in no cookie: browsers send cookies to every port of this
// address, whoever serves there. Windows of this origin hand it to each other; no other origin hears them.
const KEY = 'prism-console';
const windows = new BroadcastChannel(KEY);
let secret = null;
try { secret = sessionStorage.getItem(KEY); } catch { /* Whoever logs in is told. */ }
// What opened it once, and does no longer.
let spent;
windows.addEventListener('message', ({ data }) => {
  if (data.asks && secret) windows.postMessage({ secret });
  if (data.secret && !secret) take(data.secret);
  if (data.leaves && secret) leave();
});

function keep(given) {
  secret = given;
  sessionStorage.setItem(KEY, secret);
}

// The person has logged out in another window. One that went on would hand what it has to the next.
async function leave() {
  try { await fetch('/console/logout', sent({ method: 'POST' })); } catch { /* Then nobody is there. */ }
  over();
}

function forget() {
  spent = secret;
  secret = null;
  try { sessionStorage.removeItem(KEY); } catch { /* Then nothing is there. */ }
}

// Cookies stay at home: they open nothing here, and too many of them could keep us out.
const sent = (more) => ({ credentials: 'omit', cache: 'no-store', ...more, headers: { 'X-Prism-Console': secret ?? '', ...more?.headers } });

async function login() {
  const code = location.hash.slice(1);
  // Before anything else: it must not stay in the address bar, nor in the history.
  history.replaceState(null, '', location.pathname);
  const show = (id) => { for (const part of ['login', 'login-help', 'login-bare', 'login-blocked']) $(`#${part}`).hidden = part !== id; };
  if (!code && secret) return location.replace('/console/requests');
  if (!code) return show('login-bare');
  show('login');
  try {
    const answer = await fetch('/console/login', sent({
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ code }),
    }));
    if (!answer.ok) return show('login-help');
    const entered = await answer.json();
    try { keep(entered.secret); } catch { return show('login-blocked'); }
    // Windows that wait for it go on.
    windows.postMessage({ secret });
    location.replace(entered.to);
  } catch {
    $('#login-state').textContent = 'Prism does not answer. Is it running?';
  }
}

// --- Times ---

// The daemon's clock is what counts; ours may be off.
let skew = 0;
const now = () => Date.now() + skew;

function ago(ms) {
  const s = Math.trunc(ms / 1000);
  if (s < 3) return 'just now';
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.trunc(s / 60)} min ago`;
  if (s < 86400) return `${Math.trunc(s / 3600)} h ago`;
  return `${Math.trunc(s / 86400)} d ago`;
}

function clock(ms) {
  const s = Math.trunc((Math.max(0, ms) + 999) / 1000);
  const two = (n) => String(n).padStart(2, '0');
  const hours = Math.trunc(s / 3600);
  return hours ? `${hours}:${two(Math.trunc(s / 60) % 60)}:${two(s % 60)}` : `${Math.trunc(s / 60)}:${two(s % 60)}`;
}

function say(node, text) { if (node.textContent !== text) node.textContent = text; }

function tick() {
  const at = now();
  for (const node of $$('time[data-ago]')) say(node, ago(at - Number(node.dataset.ago)));
  for (const node of $$('time[data-until]')) say(node, clock(Number(node.dataset.until) - at));
  for (const node of $$('progress[data-until]')) node.value = Math.max(0, Number(node.dataset.until) - at);
}

// --- Patching ---

// Makes `old` like `fresh`, and keeps what the person has done to it: focus, what was typed, what was ticked or unfolded.
function patch(old, fresh) {
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value && !kept(old, name)) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !kept(old, name)) old.removeAttribute(name);
  }
  children(old, fresh);
}

function kept(node, name) {
  return name === 'open' || name === 'data-new' || name === 'data-mine' || name === 'data-busy' || (name === 'hidden' && node.closest('[data-mine]'))
    || (name === 'value' && node.tagName !== 'PROGRESS');
}

function children(old, fresh) {
  const known = new Map();
  for (const child of old.children) if (child.dataset.key) known.set(child.dataset.key, child);
  let at = old.firstChild;
  const step = () => { at = at.nextSibling; };
  for (const next of [...fresh.childNodes]) {
    const key = next.dataset?.key;
    const same = key ? known.get(key) : undefined;
    if (same) {
      known.delete(key);
      if (same === at) step(); else old.insertBefore(same, at);
      patch(same, next);
    } else if (!key && at && like(at, next)) {
      const current = at;
      step();
      if (current.nodeType === Node.TEXT_NODE) { if (current.data !== next.data && !old.matches('time')) current.data = next.data; } else patch(current, next);
    } else {
      old.insertBefore(document.importNode(next, true), at);
    }
  }
  while (at) { const gone = at; step(); if (!mine(gone)) gone.remove(); }
  for (const gone of known.values()) gone.remove();
}

const mine = (node) => Boolean(node.hasAttribute?.('data-mine'));

function like(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && !one.dataset?.key && !mine(one)
    && one.id === other.id && one.className === other.className;
}

async function fetched(url) {
  const answer = await fetch(url, sent());
  if (answer.status === 401) { over(); throw new Error('over'); }
  return { ok: answer.ok, page: new DOMParser().parseFromString(await answer.text(), 'text/html') };
}

let refreshing = false;
let again = false;

// One refresh at a time; what changes meanwhile is seen by the next.
async function refresh() {
  if (!main || refreshing) { again = true; return; }
  refreshing = true;
  do {
    again = false;
    try {
      const url = new URL(location.href);
      const { ok, page: answer } = await fetched(`${url.pathname}${url.search ? `${url.search}&` : '?'}part`);
      const fresh = $('main', answer);
      if (ok && fresh) show(fresh);
    } catch { /* The stream tells, and comes back by itself. */ }
  } while (again);
  refreshing = false;
}

let filled = false;
function show(fresh) {
  skew = Number(fresh.dataset.now) - Date.now();
  badge(JSON.parse(fresh.dataset.waiting));
  const before = new Set($$('[data-key]', main).map((node) => node.dataset.key));
  const focus = document.activeElement;
  const place = focus?.closest?.('[data-item]')?.closest('[data-key]')?.dataset.key ?? focus?.dataset?.key;
  const places = items().map((node) => node.closest('[data-key]')?.dataset.key);
  children(main, fresh);
  for (const node of $$('.rows > [data-key], .card[data-key], .lines > [data-key]', main)) {
    if (filled && !before.has(node.dataset.key)) node.dataset.new = '';
  }
  filled = true;
  // What had the focus is gone: its neighbour has it now, not the top of the page.
  if (place && !document.contains(focus)) {
    const all = items();
    const next = all[Math.min(Math.max(places.indexOf(place), 0), all.length - 1)] ?? main;
    next.focus({ preventScroll: true });
  }
  tick();
}

// --- Live ---

// What was told last of what waits; nothing is announced that was there before the page.
let shown;
// The browser's own event streams cannot show a header, so it is read here.
async function* told(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split('\n\n');
    text = events.pop();
    for (const event of events) {
      const fields = event.split('\n').map((line) => line.match(/^(\w+): ?(.*)$/)).filter(Boolean);
      yield Object.fromEntries(fields.map(([, name, what]) => [name, what]));
    }
  }
}

let lost = false;
async function connect() {
  const live = $('#live');
  const state = (name, word) => { live.dataset.state = name; say($('.word', live), word); };
  try {
    const answer = await fetch('/console/events', sent());
    if (answer.status === 401) return over();
    if (!answer.ok) throw new Error(`Prism answers ${answer.status}.`);
    for await (const { event, data } of told(answer.body)) {
      if (event === 'over') return over();
      if (event !== 'changed') continue;
      const { pages, waiting } = JSON.parse(data);
      state('live', 'Live');
      badge(waiting);
      // After a pause nobody knows what was missed.
      if (lost || pages.includes(page)) refresh();
      if (dialog.open && (lost || pages.includes('requests'))) renew();
      lost = false;
    }
  } catch { /* It comes back, or the session is over and it is told. */ }
  lost = true;
  state('away', 'Reconnecting…');
  setTimeout(connect, 1000);
}

function badge(waiting) {
  const all = Object.values(waiting).reduce((sum, number) => sum + number, 0);
  const name = document.title.replace(/^\(\d+\) /, '');
  document.title = all ? `(${all}) ${name}` : name;
  for (const [what, number] of Object.entries(waiting)) {
    const node = $(`[data-count="${what}"]`);
    node.hidden = number === 0;
    if (node.firstChild.data !== String(number)) node.firstChild.data = String(number);
  }
  shown ??= waiting;
  if (waiting.requests > shown.requests) announce(waiting.requests === 1 ? 'A request waits for you' : `${waiting.requests} requests wait for you`);
  if (waiting.confirmations > shown.confirmations) announce(waiting.confirmations === 1 ? 'A step waits for your word' : `${waiting.confirmations} steps wait for your word`);
  shown = waiting;
}

function announce(text) { const region = $('#say'); region.textContent = ''; region.textContent = text; }

// The session is over, or this window has none: what was on the page goes, and it is said how to come back.
let leaving = false;
function over() {
  if (leaving) return;
  forget();
  if (dialog.open) dialog.close();
  main.replaceChildren();
  $('.frame').hidden = true;
  $('#closed').hidden = false;
  document.body.className = 'alone';
  document.title = 'Prism · Session over';
  // If the person is logged in in another window, or will be, this one goes on.
  windows.postMessage({ asks: true });
}

// Another window of ours has what this one needs.
function take(given) {
  if (!page || leaving || given === spent) return;
  keep(given);
  location.reload();
}

// --- What the person does ---

async function post(url, body) {
  let answer;
  try {
    answer = await fetch(url, sent({ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body ?? {}) }));
  } catch { throw new Error('Prism does not answer. Is it running?'); }
  if (answer.status === 401) { over(); throw new Error('Your session is over.'); }
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(told.error?.message ?? `Prism answers ${answer.status}.`);
  return told;
}

let toasting;
function toast(text, tone = '') {
  const node = $('#toast');
  node.dataset.tone = tone;
  node.textContent = text;
  node.hidden = false;
  clearTimeout(toasting);
  toasting = setTimeout(() => { node.hidden = true; }, 4000);
}

// What takes away is done in any case; where there is no room to write it down, that is said.
const did = (told, text) => toast(told.unwritten ? `${text} Mind: ${told.unwritten}.` : text, told.unwritten ? 'bad' : '');

function fault(within, text) {
  const node = $('[data-fault]', within);
  if (!node) return toast(text, 'bad');
  node.textContent = text;
  node.hidden = !text;
  if (text) node.scrollIntoView({ block: 'nearest' });
}

// Nothing is pressed twice.
async function once(button, work) {
  if (button.disabled) return;
  button.disabled = true;
  try { await work(); } finally { button.disabled = false; }
}

function step(within, name) {
  for (const part of $$('[data-step]', within)) part.hidden = part.dataset.step !== name;
  within.dataset.mine = '';
  if (name === 'deny') $('[name="reason"]', within).focus();
  if (name === 'decide') { delete within.dataset.mine; $('[data-deny]', within).focus(); }
}

// A button that asks first: the question stands in its card, with the focus on the answer.
function ask(button) {
  const card = button.closest('.card');
  if ($('.ask', card)) return;
  const box = document.createElement('div');
  box.className = 'ask';
  box.dataset.mine = '';
  box.setAttribute('role', 'group');
  const words = document.createElement('span');
  words.textContent = button.dataset.ask;
  const [back, yes] = ['Keep', button.dataset.yes].map((text) => Object.assign(document.createElement('button'), { type: 'button', textContent: text }));
  yes.className = 'danger';
  yes.dataset.yes = '';
  const close = () => { box.remove(); button.focus(); };
  back.addEventListener('click', close);
  box.addEventListener('keydown', (event) => { if (event.key === 'Escape') { event.stopPropagation(); close(); } });
  yes.addEventListener('click', () => once(yes, async () => {
    try {
      did(await post(button.dataset.post, JSON.parse(button.dataset.body ?? '{}')), button.dataset.done);
      box.remove();
      await refresh();
    } catch (error) { toast(error.message, 'bad'); }
  }));
  box.append(words, back, yes);
  card.append(box);
  yes.focus();
}

async function pressed(button) {
  const card = button.closest('.consent, .confirmation');
  if (button.dataset.open) return open(button.dataset.open, button);
  if ('close' in button.dataset) return button.closest('dialog').close();
  if ('keys' in button.dataset) return $('#keys').showModal();
  if (button.dataset.ask) return ask(button);
  if ('deny' in button.dataset) return step(card, 'deny');
  if ('back' in button.dataset) return step(card, 'decide');
  if ('denyNow' in button.dataset) return once(button, () => deny(card));
  if (button.dataset.allow) return once(button, () => allow(card, button));
  if (button.dataset.post) {
    return once(button, async () => {
      // Whoever leaves hears that the session is over, and knows.
      leaving = Boolean(button.dataset.then);
      try {
        const told = await post(button.dataset.post, JSON.parse(button.dataset.body ?? '{}'));
        if (button.dataset.then) { forget(); windows.postMessage({ leaves: true }); location.href = button.dataset.then; return; }
        did(told, button.dataset.done);
        await refresh();
      } catch (error) { leaving = false; toast(error.message, 'bad'); }
    });
  }
}

// --- Requests ---

let opener;
let asked;

async function open(url, from) {
  try {
    const { ok, page: answer } = await fetched(url);
    if (!ok) return toast('That request is gone.', 'bad');
    opener = from;
    asked = url;
    dialog.replaceChildren(...[...answer.body.childNodes].map((node) => document.importNode(node, true)));
    dialog.showModal();
    tally();
    tick();
    // Not on a button: nothing is decided by a key that was meant for something else.
    ($('.sheet-body', dialog) ?? dialog).scrollTop = 0;
    const first = $('.close', dialog);
    first?.focus();
  } catch { /* The session is over. */ }
}

// The dialog shows the request as it is now. While it can be decided, what was ticked stays.
async function renew() {
  try {
    const { ok, page: answer } = await fetched(asked);
    const form = $('[data-key]', dialog);
    const fresh = $('[data-key]', answer.body);
    if (!ok || !dialog.open || !form || !fresh || form.dataset.key === fresh.dataset.key) return;
    dialog.replaceChildren(...[...answer.body.childNodes].map((node) => document.importNode(node, true)));
    $('[data-close]', dialog)?.focus();
    announce('This request was decided.');
  } catch { /* The stream comes back by itself. */ }
}

function tally() {
  const node = $('[data-tally]', dialog);
  if (!node) return;
  const all = $$('[name="scope"]', dialog);
  const chosen = all.filter((box) => box.checked).length;
  say(node, chosen === all.length ? `Approve all ${all.length}` : `Approve ${chosen} of ${all.length}`);
}

async function approve(form) {
  const values = (name) => $$(`[name="${name}"]:checked`, form).map((box) => box.value);
  const time = $('[name="time"]:checked', form)?.value;
  const minutes = $('[name="minutes"]', form);
  fault(form, '');
  if (!values('scope').length) return fault(form, 'Tick at least one thing that it may do, or deny it.');
  if ($$('[name="root"]', form).length && !values('root').length) return fault(form, 'Tick at least one folder, or deny it.');
  if (time === 'custom' && !minutes.checkValidity()) { minutes.focus(); return fault(form, `A grant lasts from 1 to ${minutes.max} minutes.`); }
  try {
    await post('/console/act/approve', {
      request_id: form.dataset.request,
      approved_scopes: values('scope'),
      approved_roots: values('root'),
      ttl_seconds: time === 'custom' ? Number(minutes.value) * 60 : Number(time),
      confirm_changes: $('[name="confirm_changes"]', form).checked,
    });
    dialog.close();
    toast('Approved. It is under Grants, with its timer.');
    await refresh();
  } catch (error) { fault(form, error.message); }
}

async function deny(card) {
  const reason = $('[name="reason"]', card).value.trim() || null;
  const { confirmation, digest, request } = card.dataset;
  try {
    const told = confirmation
      ? await post('/console/act/confirm', { confirmation_id: confirmation, digest, allow: false, reason })
      : await post('/console/act/deny', { request_id: request, reason });
    if (dialog.open) dialog.close();
    did(told, 'Denied.');
    await refresh();
  } catch (error) { fault(card, error.message); }
}

async function allow(card, button) {
  const { confirmation, digest } = card.dataset;
  const answer = { confirmation_id: confirmation, digest, allow: true };
  if (button.dataset.allow === 'times') {
    const uses = $('[name="uses"]', card);
    if (!uses.checkValidity()) { uses.focus(); return fault(card, 'From 2 to 1000 times.'); }
    answer.uses = Number(uses.value);
  }
  if (button.dataset.allow === 'while') answer.until_seconds = Number(button.dataset.seconds);
  fault(card, '');
  try {
    await post('/console/act/confirm', answer);
    toast('Allowed.');
    await refresh();
  } catch (error) { fault(card, error.message); }
}

// --- Keys ---

const items = () => $$('[data-item]', main);

function move(by) {
  const all = items();
  if (!all.length) return;
  const at = all.findIndex((node) => node.contains(document.activeElement));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const typing = event.target.matches('input:not([type="checkbox"], [type="radio"]), textarea');
  if (typing) {
    if (event.key === 'Escape' && !dialog.open) event.target.blur();
    if (event.key === 'Enter' && event.target.name === 'reason') { event.preventDefault(); $('[data-deny-now]', event.target.closest('[data-step]')).click(); }
    return;
  }
  if (event.key === '?') { event.preventDefault(); if (!dialog.open) $('#keys').showModal(); return; }
  const modal = $('dialog[open]');
  const within = modal ?? document.activeElement?.closest('.card');
  const go = (selector) => { const button = within && $(selector, within); if (button && !button.closest('[hidden]')) { event.preventDefault(); button.focus(); } return Boolean(button); };
  switch (event.key) {
    case 'a': if (!go('[data-approve]')) openFocused(event, '[data-approve]'); break;
    case 'd': {
      const button = within && $('[data-deny]', within);
      if (button && !button.closest('[hidden]')) { event.preventDefault(); button.click(); } else openFocused(event, '[data-deny]');
      break;
    }
    case 'r': go('[data-act]'); break;
    default: if (!modal) list(event);
  }
}

// On a request in the list: its dialog first, so that nothing is decided unseen.
async function openFocused(event, selector) {
  const row = document.activeElement?.closest('[data-open]');
  if (!row) return;
  event.preventDefault();
  await open(row.dataset.open, row);
  const button = $(selector, dialog);
  if (selector === '[data-deny]') button?.click(); else button?.focus();
}

function list(event) {
  const arrows = document.activeElement === document.body || document.activeElement === main || document.activeElement?.matches('[data-item]');
  switch (event.key) {
    case 'j': move(1); break;
    case 'k': move(-1); break;
    case 'ArrowDown': if (!arrows) return; move(1); break;
    case 'ArrowUp': if (!arrows) return; move(-1); break;
    case '/': { const field = $('[type="search"]'); if (!field) return; field.focus(); field.select(); break; }
    default: {
      const tab = /^[1-6]$/.test(event.key) && $$('nav .tab')[Number(event.key) - 1];
      if (!tab) return;
      tab.click();
    }
  }
  event.preventDefault();
}

// --- Start ---

document.addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (button && button.type !== 'submit') pressed(button);
  // Beside a dialog is outside of it.
  if (event.target.matches('dialog[open]')) event.target.close();
});
document.addEventListener('submit', (event) => {
  if (event.target.matches('.consent')) {
    event.preventDefault();
    once($('[data-approve]', event.target), () => approve(event.target));
  }
});
document.addEventListener('change', (event) => {
  if (event.target.name === 'scope') tally();
  if (event.target.name === 'time') {
    const custom = $('[data-custom]', dialog);
    custom.hidden = event.target.value !== 'custom';
    if (!custom.hidden) $('input', custom).focus();
  }
});
document.addEventListener('input', (event) => {
  if (event.target.name === 'uses') say($('[data-allow="times"]', event.target.parentElement), `Allow ${event.target.value || '…'} times`);
});
document.addEventListener('keydown', key);
dialog?.addEventListener('close', () => { dialog.replaceChildren(); (document.contains(opener) ? opener : main)?.focus({ preventScroll: true }); });

if ($('[data-login]')) {
  login();
  // A link that is opened where this page is already loads nothing again.
  window.addEventListener('hashchange', login);
}
if (main && page) {
  if (secret) { refresh(); connect(); setInterval(tick, 1000); } else over();
}
