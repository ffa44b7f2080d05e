// Plans, machines, targets and runs in full detail.

import type { Disk, Fact, Job, Plan, Report, Run } from '../document';
import { shortened } from '../clean';
import { folded, h, table } from '../dom';
import { bytes, duration, iops, moment, percent, seconds } from '../format';
import { verdictName } from './headline';

/** With more entries of a kind than this, each entry is folded. */
const MANY = 3;

function users(report: Report, uses: (run: Run) => boolean): string {
  const names = report.runs.filter(uses).map((run) => nameOf(report, run));
  return names.length > 6
    ? `${names.slice(0, 5).join('; ')} and ${names.length - 5} others`
    : names.join('; ');
}

export function plans(report: Report): HTMLElement {
  const each = report.plans.map((plan, index) => {
    const title = shortened(plan.jobs.map((job) => job.name).join(', '));
    const content = () =>
      h(
        'div',
        {},
        h('p', {}, h('small', {}, `used by: ${users(report, (run) => run.plan === index)}`)),
        h('pre', { tabindex: 0, 'aria-label': `Job file of ${title}` }, jobFile(plan)),
        folded('Every option as it was resolved', () =>
          h(
            'pre',
            { tabindex: 0, 'aria-label': `All options of ${title}` },
            JSON.stringify(plan, null, 2),
          ),
        ),
      );
    const fold = folded(title, content, report.plans.length <= MANY);
    fold.id = `plan-${index}`;
    return fold;
  });
  return h(
    'div',
    {},
    h('p', {}, h('code', {}, 'iosonde fio FILE'), ' repeats a run with its job file.'),
    ...together(report, each, 'plans'),
  );
}

/** Folds the many entries of a grid into one. */
function together(report: Report, each: HTMLElement[], what: string): HTMLElement[] {
  const grid = each.length > MANY && report.runs.every((run) => run.of_grid);
  return grid ? [folded(`All ${each.length} ${what}`, () => h('div', {}, ...each))] : each;
}

function jobFile(plan: Plan): string {
  const lines = (given: Job['given']) =>
    given
      .filter((option) => option.name !== 'name')
      .map((option) => (option.value === '' ? option.name : `${option.name}=${option.value}`));
  const global =
    plan.global_options.length > 0 ? ['[global]', ...lines(plan.global_options), ''] : [];
  const jobs = plan.jobs.flatMap((job) => [`[${job.name}]`, ...lines(job.given), '']);
  return [...global, ...jobs].join('\n').trimEnd() + '\n';
}

export function machines(report: Report): HTMLElement {
  const hosts = report.hosts.map((host, index) => {
    const known = host['architecture'] === '' ? null : facts(host);
    const who =
      report.hosts.length > 1
        ? h('p', {}, h('small', {}, `of: ${users(report, (run) => run.host === index)}`))
        : null;
    return h(
      'div',
      { class: 'card' },
      h('h3', {}, String(host['hostname'] ?? 'Machine')),
      who,
      known ?? h('p', {}, 'Unknown: simulated runs do not depend on the machine.'),
    );
  });
  const targets = report.targets.flatMap((list, index) =>
    list.map((target) =>
      h(
        'div',
        { class: 'card' },
        h('h3', {}, `Target ${String(target['path'] ?? '')}`),
        report.targets.length > 1
          ? h('p', {}, h('small', {}, `of: ${users(report, (run) => run.targets === index)}`))
          : null,
        facts(target),
      ),
    ),
  );
  return h('div', { class: 'cards' }, ...hosts, ...targets);
}

/** Shows all fields of a fact, including fields of newer versions of iosonde. */
function facts(fact: Fact): HTMLElement | null {
  const rows = Object.entries(fact).flatMap(([name, value]) => {
    const shown = told(name, value);
    return shown === null ? [] : [h('div', {}, h('dt', {}, label(name)), h('dd', {}, shown))];
  });
  return rows.length === 0 ? null : h('dl', {}, ...rows);
}

function told(name: string, value: unknown): Node | string | null {
  if (value === null || value === undefined || value === '') return null;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number') return number(name, value);
  if (Array.isArray(value)) return listed(name, value);
  if (typeof value === 'object') return facts(value as Fact);
  return String(value);
}

function listed(name: string, values: unknown[]): Node | string | null {
  if (values.length === 0) return null;
  if (values.every((value) => typeof value !== 'object')) return values.map(String).join(', ');
  const items = values.map((value) => told(name, value)).filter((item) => item !== null);
  return h('div', { class: 'nested' }, ...items);
}

function number(name: string, value: number): string {
  if (name.endsWith('_bytes'))
    return value >= 1024 ? `${bytes(value)} (${value} bytes)` : bytes(value);
  if (name.endsWith('_bytes_per_s')) return `${bytes(value)}/s`;
  if (name.endsWith('_ns')) return duration(value);
  if (name.endsWith('_percent')) return percent(value);
  return String(value);
}

function label(name: string): string {
  return name
    .replace(/_(bytes|ns|percent)$/, '')
    .replace(/_bytes_per_s$/, ' per second')
    .replaceAll('_', ' ');
}

/** An entry per run. Its content is created when opened, as there may be hundreds. */
export function runs(report: Report): HTMLElement {
  const each = report.runs.map((run) =>
    folded(`${nameOf(report, run)}${run.preparation ? ' (preparation)' : ''}`, () => runFacts(run)),
  );
  return h('div', {}, ...together(report, each, 'runs'));
}

function nameOf(report: Report, run: Run): string {
  const isOne = report.runs.every((each) => each.subject === run.subject);
  return isOne ? run.name : `${run.subject}: ${run.name}`;
}

function runFacts(run: Run): HTMLElement {
  const ios = run.figures
    .filter((figure) => figure.job === null || figure.job !== 'all jobs')
    .reduce((sum, figure) => sum + figure.ios, 0);
  const cpu = run.cpu ?? { user_ns: 0, system_ns: 0 };
  const spent = cpu.user_ns + cpu.system_ns;
  const pairs: [string, string][] = [
    ['program', run.program],
    ['from', run.source],
    ['began', moment(run.started_at_ms)],
    ['took', `${seconds(run.elapsed_ns / 1e9)}, layout included`],
    ['I/O issued by', run.backends.map((backend) => backendText(backend)).join('; ')],
    [
      'memory available',
      run.memory_available_bytes === null
        ? ''
        : `${bytes(run.memory_available_bytes)} when it began`,
    ],
    [
      'CPU time',
      spent > 0
        ? `${duration(cpu.user_ns)} user, ${duration(cpu.system_ns)} system${
            ios > 0 ? `, ${duration(spent / ios)} for each I/O` : ''
          }`
        : '',
    ],
    [
      'labels',
      Object.entries(run.labels)
        .map(([key, value]) => `${key}=${value}`)
        .join(', '),
    ],
    ...run.verdicts.map((verdict): [string, string] => [
      verdictName(verdict.kind),
      verdict.evidence,
    ]),
    ...run.failures.map((failure): [string, string] => ['I/O error', failure]),
    ...run.events.map((event): [string, string] => [
      `after ${seconds(event.at_ns / 1e9)}`,
      event.message,
    ]),
  ];
  const rows = pairs
    .filter(([, text]) => text !== '')
    .map(([name, text]) => h('div', {}, h('dt', {}, name), h('dd', {}, text)));
  return h('div', {}, h('dl', {}, ...rows), run.disks.length > 0 ? disks(run.disks) : null);
}

function backendText(backend: Run['backends'][number]): string {
  const asked =
    backend.asked !== backend.engine && backend.asked !== 'auto'
      ? ` instead of ${backend.asked}`
      : '';
  const extras = [
    backend.direct ? 'O_DIRECT' : 'page cache',
    backend.registered_files ? 'registered files' : '',
    backend.fixed_buffers ? 'fixed buffers' : '',
    ...(backend.flags ?? []),
  ].filter(Boolean);
  return `${backend.engine}${asked} (${extras.join(', ')})${
    backend.reason === null ? '' : `: ${backend.reason}`
  }`;
}

function disks(list: Disk[]): HTMLElement {
  const rows = (disk: Disk, depth: number): (string | number)[][] => [
    [
      `${'· '.repeat(depth)}${disk.name}`,
      iops(disk.ios[0]),
      bytes(disk.sectors[0] * 512),
      iops(disk.ios[1]),
      bytes(disk.sectors[1] * 512),
      percent(disk.util_percent),
    ],
    ...disk.below.flatMap((below) => rows(below, depth + 1)),
  ];
  return table({
    caption: 'Activity of the block devices during the run',
    head: ['device', 'reads', 'read', 'writes', 'written', 'busy'],
    rows: list.flatMap((disk) => rows(disk, 0)),
  });
}
