// The person, before any agent comes: has the tools, and has built each project once, or one like it, so that what it needs is in
// the caches of cargo, npm and go. What cannot be had is told with what to type.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import { MISTAKEN, PROJECTS, make } from './projects.mjs';

const { WORK_KEPT: kept, WORK_VENV: venv, WORK_CHROMIUM: chromium, WORK_LACKS_RUST: lacksRust } = process.env;
const run = promisify(execFile);
const has = (program, ...words) => run(program, words).then(() => true, () => false);

// Crates without dependencies, of which somebody may have some.
const CRATES = [['void', '1.0.2'], ['fake-simd', '0.1.2'], ['scoped-tls', '0.1.2'], ['quick-error', '1.2.2'], ['opaque-debug', '0.2.3']];
// A package that is a program.
export const PROGRAM = 'semver@7.7.2';

export class Person {
  constructor(work) { Object.assign(this, { work, lacks: {}, env: {} }); }

  // A project, in the folder that is granted; and what is the person's alone.
  root(name) { return `${this.work}/projects/${name}`; }

  own(name) { return `${this.work}/person/${name}`; }

  async prepare() {
    for (const [name, files] of Object.entries(PROJECTS)) make(this.root(name), files);
    for (const { language, files } of Object.values(MISTAKEN)) make(this.root(`wrong-${language}`), files);
    const steps = {
      cargo: () => this.crates(), npm: () => this.packages(), npx: () => this.program(), pytest: () => this.environments(),
      conda: () => this.conda(), go: () => this.modules(), cmake: () => this.installed('cmake', 'cmake g++ make', ['ctest', '--version'], ['c++', '--version']),
      gopls: () => this.installed('gopls', 'gopls golang-go', ['gopls', 'version'], ['go', 'version']), clangd: () => this.installed('clangd', 'clangd g++'),
      curl: () => this.installed('curl', 'curl'),
    };
    await Promise.all(Object.entries(steps).map(async ([tool, step]) => {
      try { await step(); } catch (error) { this.lacks[tool] ??= `${error.message.split('\n')[0]} ${error.stderr ?? ''}`.slice(0, 300); }
    }));
    if (lacksRust) this.lacks['rust-analyzer'] = `type: ${lacksRust}`;
    if (!chromium) this.lacks.playwright = 'type: apt-get install chromium';
    this.lacks.playwright ??= this.lacks.npm;
    // As an activated environment has it, and one more that conda has made.
    Object.assign(this.env, {
      PATH: [`${venv}/bin`, process.env.PATH, `${this.prefix}/bin`].join(':'), VIRTUAL_ENV: venv, CONDA_PREFIX: this.prefix, GOPATH: this.own('gopath'),
    });
  }

  async installed(tool, packages, ...asked) {
    for (const words of asked.length ? asked : [[tool, '--version']]) {
      if (!(await has(...words))) throw new Error(`type: apt-get install ${packages}`);
    }
  }

  // A lock file as the client makes it, kept from the first run on.
  async lock(root, file, of, words) {
    const hash = createHash('sha256').update(readFileSync(`${root}/${of}`)).digest('hex').slice(0, 16);
    const one = `${kept}/${hash}-${file}`;
    if (!existsSync(one)) {
      await run(words[0], words.slice(1), { cwd: root });
      copyFileSync(`${root}/${file}`, `${one}.new`);
      renameSync(`${one}.new`, one);
    }
    copyFileSync(one, `${root}/${file}`);
  }

  async crates() {
    const registry = `${process.env.CARGO_HOME ?? `${process.env.HOME}/.cargo`}/registry`;
    for (const name of ['crate', 'packed', 'wrong-rust']) {
      await this.lock(this.root(name), 'Cargo.lock', 'Cargo.toml', ['cargo', 'generate-lockfile']);
      await run('cargo', ['fetch', '--locked'], { cwd: this.root(name) });
    }
    for (const folder of existsSync(`${registry}/src`) ? readdirSync(`${registry}/src`) : []) {
      rmSync(`${registry}/src/${folder}/hex-0.4.2`, { recursive: true, force: true });
    }
    const archives = readdirSync(`${registry}/cache`).flatMap((folder) => readdirSync(`${registry}/cache/${folder}`));
    if (!archives.includes('hex-0.4.2.crate')) throw new Error('cargo fetch has not cached the crate hex');
    const [name, version] = CRATES.find((crate) => !archives.includes(`${crate.join('-')}.crate`));
    const manifest = readFileSync(`${this.root('crate')}/Cargo.toml`, 'utf8');
    writeFileSync(`${this.root('fetched')}/Cargo.toml`, manifest.replace(/^fnv .*$/m, `${name} = "=${version}"`));
    this.fetched = `${name} ${version}`;
  }

  async packages() {
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund'];
    // With addresses in it, whatever the person's settings say.
    const lock = ['npm', 'install', '--package-lock-only', '--omit-lockfile-registry-resolved=false', ...flags];
    await this.lock(this.root('page'), 'package-lock.json', 'package.json', lock);
    const before = this.own('page');
    mkdirSync(before, { recursive: true });
    for (const file of ['package.json', 'package-lock.json']) copyFileSync(`${this.root('page')}/${file}`, `${before}/${file}`);
    await run('npm', ['ci', '--prefer-offline', ...flags], { cwd: before });
    rmSync(before, { recursive: true });
  }

  async program() {
    // Where packages come from may be a setting in the home folder, which no agent's program reads.
    const { stdout } = await run('npm', ['config', 'get', 'registry']);
    this.registry = stdout.trim();
    await run('npm', ['cache', 'add', PROGRAM, '--prefer-offline']);
  }

  // One in the project, as `python3 -m venv` and pip leave it; the one outside is the editor's yardstick's.
  async environments() {
    const inside = `${this.root('inside')}/.venv`;
    await run('python3', ['-m', 'venv', '--without-pip', inside]);
    cpSync(site(venv), site(inside), { recursive: true });
    rmSync(`${site(inside)}/pip`, { recursive: true, force: true });
  }

  // Conda itself comes from nowhere that the yardsticks install from. So a prefix is laid out as it lays one out: a Python of its
  // own with its library, no pyvenv.cfg, and the folder that conda keeps its records in.
  async conda() {
    const asked = 'import json, sys, sysconfig; print(json.dumps([sys.version.split()[0], sys._base_executable, sysconfig.get_path("stdlib")]))';
    const [version, program, library] = JSON.parse((await run('python3', ['-c', asked])).stdout);
    this.prefix = `${kept}/conda-${version}`;
    if (existsSync(this.prefix)) return;
    const made = `${this.prefix}.new`;
    rmSync(made, { recursive: true, force: true });
    for (const folder of ['bin', 'conda-meta', 'lib']) mkdirSync(`${made}/${folder}`, { recursive: true });
    writeFileSync(`${made}/conda-meta/history`, '');
    const minor = version.split('.').slice(0, 2).join('.');
    copyFileSync((await run('realpath', [program])).stdout.trim(), `${made}/bin/python${minor}`);
    await run('ln', ['-s', `python${minor}`, `${made}/bin/python`]);
    const unneeded = new Set(['test', 'site-packages', 'dist-packages', 'idlelib', 'tkinter', 'turtledemo', 'ensurepip', 'lib2to3']);
    cpSync(library, `${made}/lib/python${minor}`, {
      recursive: true, dereference: true, preserveTimestamps: true, filter: (path) => path === library || !(unneeded.has(basename(path)) || basename(path).startsWith('config-')),
    });
    const packages = (await run(`${made}/bin/python`, ['-c', 'import sysconfig; print(sysconfig.get_path("purelib"))'])).stdout.trim();
    cpSync(site(venv), packages, { recursive: true });
    renameSync(made, this.prefix);
  }

  // A module of somebody else's, which the go command has fetched from where it is told to.
  async modules() {
    await this.installed('go', 'golang-go', ['go', 'version']);
    const at = `${this.own('modules')}/example.org/nest/@v`;
    mkdirSync(at, { recursive: true });
    const module = 'module example.org/nest\n\ngo 1.19\n';
    make(at, { list: 'v1.0.0\n', 'v1.0.0.info': '{"Version": "v1.0.0"}\n', 'v1.0.0.mod': module });
    const packed = `import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as file:
    file.writestr("example.org/nest@v1.0.0/go.mod", ${JSON.stringify(module)})
    file.writestr("example.org/nest@v1.0.0/nest.go", "package nest\\n\\nfunc Eggs() int {\\n\\treturn 3\\n}\\n")`;
    await run('python3', ['-c', packed, `${at}/v1.0.0.zip`]);
    // The module's folders are such that nobody but root could remove them.
    const env = { ...process.env, GOPATH: this.own('gopath'), GOPROXY: `file://${this.own('modules')}`, GONOSUMDB: '*', GOFLAGS: '-modcacherw' };
    await run('go', ['mod', 'tidy'], { cwd: this.root('module'), env });
  }
}

// Where an environment has its packages.
function site(prefix) {
  const library = readdirSync(`${prefix}/lib`).find((name) => name.startsWith('python3'));
  return `${prefix}/lib/${library}/site-packages`;
}
