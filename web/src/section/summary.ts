// The first screen: what was measured where, the answer, and reasons for doubt.

import type { Fact, Load, Report, Run, Sweep, Winner } from '../document';
import { folded, h } from '../dom';
import { bandwidth, bytes, capital, iops, listedNames, moment } from '../format';
import { isLargeFigure, groupBy, type Row } from '../rows';
import { deviceParts, loadName, subjectsOf } from '../subjects';
import { chipsOf, WIDE_INTERVAL, type Chip } from './headline';

/** Start of the names of simulated devices. */
const SIMULATED = 'sim:';
/** Most tiles. More figures are in the table only. */
const TILES = 12;
/** Verdicts of suites that are shown at once. The others are folded. */
const SUITES = 6;

/** Host, device, file system, kernel and date in one line, as in page_header.rs; number of runs. */
export function about(report: Report): string {
  const hosts = report.hosts.flatMap((host) => (host['architecture'] === '' ? [] : [host]));
  const kernels = hosts.map((host) => String(host['kernel'] ?? '')).filter((name) => name !== '');
  const systems = kernels.map((kernel) => `Linux ${kernel}`);
  const parts = [
    ...onHosts(report, namedHosts(hosts)),
    listedNames([...new Set(report.targets.flat().map(described))]),
    listedNames([...new Set(systems)]),
    measuredAt(report),
    counted(report),
  ];
  return parts.filter((part) => part !== '').join(' · ');
}

/** The names of the hosts, or the number of machines if some share a name or have none. */
function namedHosts(hosts: Fact[]): string {
  const nameOf = (host: Fact) => String(host['hostname'] ?? '');
  // The kernel of a machine may change, and with it some MiB of its memory.
  const machineOf = (host: Fact) => {
    const cpu = host['cpu'] as { model?: string; online?: number } | undefined;
    const memory = Math.round(Number(host['memory_bytes'] ?? 0) / 2 ** 30);
    return JSON.stringify([nameOf(host), cpu?.model, cpu?.online, memory]);
  };
  const names = new Set(hosts.map(nameOf));
  const machines = new Set(hosts.map(machineOf));
  const isNamed = names.size === machines.size && !names.has('');
  return isNamed ? listedNames([...names]) : many(machines.size, 'host');
}

const many = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;

/**
 * How many of the targets are simulated, if some are and others are not, and the hosts. Both are
 * one part if the host of each other target is known.
 */
function onHosts(report: Report, hosts: string): string[] {
  const measured = report.runs.filter((run) => !run.preparation);
  const others = measured.filter((run) => !isSimulated(report, run));
  const single = withoutRuns(report);
  const realSingle = single.filter(({ target }) => !target.startsWith(SIMULATED));
  const all = new Set([...measured, ...single].map(({ subject }) => subject));
  const real = new Set([...others, ...realSingle].map(({ subject }) => subject));
  const simulated = all.size - real.size;
  if (real.size === 0 || simulated === 0) return [hosts];
  const some = `${simulated} of ${all.size} targets simulated`;
  const isEachHostKnown =
    realSingle.length === 0 && others.every((run) => hostOf(report, run)?.['architecture']);
  if (hosts === '' || !isEachHostKnown) return [some, hosts];
  return [`${some}, the other${real.size === 1 ? '' : 's'} on ${hosts}`];
}

/** Sweeps and load studies whose single runs are not among the results. */
function withoutRuns(report: Report): (Sweep | Load)[] {
  const sources = new Set(report.runs.map((run) => run.source));
  return [...report.sweeps, ...report.loads].filter(({ source }) => !sources.has(source));
}

const hostOf = (report: Report, run: Run) =>
  run.host === null ? undefined : report.hosts[run.host];

/**
 * Whether a run was on a simulated device. A label may replace the name of the device; then its
 * run has neither a machine nor a time. An imported result without a time is no simulation.
 */
function isSimulated(report: Report, run: Run): boolean {
  const isWithoutMachine = hostOf(report, run)?.['architecture'] === '';
  return run.place.startsWith(SIMULATED) || (run.started_at_ms === 0 && isWithoutMachine);
}

/** Device, model and file system: `nvme0n1 (Samsung SSD 980), ext4`. */
function described(target: Fact): string {
  const [device] = (target['devices'] ?? []) as { model?: string | null }[];
  const { source, fileSystem } = deviceParts(target);
  const model = device?.model ? ` (${device.model.trim()})` : '';
  return [`${source}${model}`, fileSystem].filter((text) => text !== '').join(', ');
}

function measuredAt(report: Report): string {
  const all = [...report.runs, ...report.kept].map((one) => one.started_at_ms);
  const times = all.filter((ms) => ms > 0);
  if (times.length > 0) return moment(Math.min(...times));
  const simulated = [
    ...report.runs.map((run) => isSimulated(report, run)),
    ...[...report.kept, ...withoutRuns(report)].map(({ target }) => target.startsWith(SIMULATED)),
  ];
  return simulated.length > 0 && simulated.every(Boolean) ? 'simulated' : '';
}

function counted(report: Report): string {
  const measured = report.runs.filter((run) => !run.preparation).length;
  if (measured > 0) return many(measured, 'run');
  if (report.kept.length > 0) return many(report.kept.length, 'result');
  return report.sweeps.length + report.loads.length > 0 ? 'files without their single runs' : '';
}

/** The verdict of each suite on each target; those that failed come first. */
export function suiteVerdicts(report: Report): HTMLElement | null {
  const rank = (passed: boolean | null) => (passed === false ? 0 : passed === null ? 1 : 2);
  const suites = [...report.suites].sort((a, b) => rank(a.passed) - rank(b.passed));
  if (suites.length === 0) return null;
  // The usual title names a single suite and its target; a chosen one may not.
  const isNamed = (names: string[]) =>
    suites.length === 1 && names.every((name) => report.title.includes(name));
  const lines = suites.map(({ name, target, verdict, passed, cautions }) => {
    const [mark, mood] = passed === null ? ['?', 'warn'] : passed ? ['✓', 'good'] : ['✗', 'bad'];
    const what = isNamed([name, target]) ? '' : `${name}, ${target}: `;
    const chip = h('span', { class: `chip ${mood}` }, mark);
    const limits = cautions.map((text) => `. ${text}`);
    return h('p', {}, chip, ' ', what, strong(verdict), ...limits);
  });
  const rest = lines.slice(SUITES);
  return h(
    'div',
    { class: 'lead', id: 'verdict' },
    ...lines.slice(0, SUITES),
    rest.length > 0 ? folded(`${rest.length} more suites`, () => h('div', {}, ...rest)) : null,
  );
}

const strong = (text: string) => h('strong', {}, capital(text));

/** The knee of each load study and the results of its objectives. */
export function kneeAnswers(report: Report): HTMLElement[] {
  const isOne = report.loads.length === 1 && subjectsOf(report).length < 2;
  return report.loads.map((load) =>
    h(
      'div',
      { class: 'lead' },
      h(
        'p',
        {},
        isOne ? null : h('strong', {}, `${loadName(load)}: `),
        h('strong', {}, 'Knee: '),
        load.knee,
      ),
      ...load.objectives.map((text) => h('p', {}, h('strong', {}, 'SLO: '), text)),
    ),
  );
}

/** The winner of each comparison of two targets, as the terminal names it. */
export function winnerSentences(report: Report): HTMLElement[] {
  const namesOf = ({ first, second }: Winner) =>
    [first, second].map((study) => report.studies[study]?.subject ?? '');
  // A result that the report has twice is no second target.
  const distinct = report.winners.filter((winner) => new Set(namesOf(winner)).size > 1);
  const winners = [...groupBy(distinct, (winner) => JSON.stringify(namesOf(winner))).values()];
  const isOne = winners.length === 1;
  return winners.flatMap(([winner]) => {
    if (!winner) return [];
    const { sentence, figures, notes } = winner;
    const names = namesOf(winner);
    const named = (text: string) =>
      text.replace(/\[(first|second)\]/g, (_, side) => names[side === 'first' ? 0 : 1] ?? '');
    const start = isOne ? 'Winner: ' : `${names.join(' and ')}: `;
    const more = () =>
      h(
        'div',
        {},
        figures.length > 0
          ? h('ul', {}, ...figures.map((text) => h('li', {}, named(text))))
          : null,
        ...notes.map((text) => h('p', {}, named(text))),
      );
    const isMore = figures.length + notes.length > 0;
    const content =
      figures.length > 0 ? 'Which is faster in each figure' : 'Notes on the comparison';
    return [
      h(
        'div',
        { class: isOne ? 'lead winner' : 'lead small winner' },
        h('p', {}, h('strong', {}, start), named(sentence)),
        isMore ? folded(content, more) : null,
      ),
    ];
  });
}

/** The expectations of suites with tick or cross; those that are not met come first. */
export function expectationList(report: Report): HTMLElement | null {
  const all = report.expectations;
  if (all.length === 0) return null;
  const moods: { [mark: string]: string } = { '✓': 'good', '?': 'warn', '✗': 'bad' };
  const met = all.filter((each) => each.mark === '✓').length;
  const isOne = new Set(all.map((each) => each.target)).size === 1;
  return h(
    'div',
    { class: 'lead', id: 'expectations' },
    h('p', {}, h('strong', {}, `${met} of ${all.length} expectations met`)),
    h(
      'ul',
      { class: 'findings' },
      ...all.map((each) =>
        h(
          'li',
          {},
          h('span', { class: `chip ${moods[each.mark] ?? ''}` }, `${each.mark} ${each.verdict}`),
          isOne ? '' : `${each.target}: `,
          `${each.expectation} (${each.figure}): ${each.evidence}`,
        ),
      ),
    ),
  );
}

/** The verdict on each target in a sentence, and what bounds its rates. */
export function verdicts(report: Report): HTMLElement[] {
  const same = groupBy(report.studies, ({ source: _, ...study }) => JSON.stringify(study));
  const studies = [...same.values()].flatMap((each) => each.slice(0, 1));
  const isOne = studies.length === 1;
  return studies.map((study) => {
    const [first, ...others] = study.ceilings;
    const bound = (text: string) => h('p', {}, h('strong', {}, 'Bottleneck: '), text);
    const more =
      others.length === 0
        ? null
        : h(
            'details',
            {},
            h('summary', {}, `${others.length} more: what bounds the other rates`),
            ...others.map(bound),
          );
    return h(
      'div',
      { class: isOne ? 'lead' : 'lead small' },
      h(
        'p',
        {},
        isOne ? null : h('strong', {}, `${study.subject}: `),
        study.sentence,
        ` Measured on ${bytes(study.working_set_bytes)}.`,
        study.interrupted ? h('strong', {}, ' It was interrupted: figures are missing.') : null,
      ),
      first === undefined ? null : bound(first),
      more,
    );
  });
}

interface Tile {
  name: string;
  value: string;
  more: string;
  /** Doubts of the figure. */
  chips?: Chip[];
}

const chipElement = ({ text, mood, why }: Chip) =>
  h('span', { class: `chip ${mood}`, title: why }, text);

/** Headline figures of a report about one subject. */
export function tiles(report: Report, rows: Row[]): HTMLElement | null {
  const shown = [
    ...rows.map((row) => tileOf(report, row)),
    ...report.sweeps.flatMap(sweepTiles),
    ...report.loads.flatMap(loadTiles),
  ];
  if (shown.length === 0 || shown.length > TILES) return null;
  const isUncertain = shown.some(({ value, more }) => `${value}${more}`.includes('~'));
  return h(
    'div',
    {},
    h(
      'dl',
      { class: 'tiles' },
      ...shown.map((tile) =>
        h(
          'div',
          {},
          h('dt', {}, tile.name),
          h(
            'dd',
            {},
            tile.value,
            h('small', {}, tile.more),
            ...(tile.chips ?? []).map(chipElement),
          ),
        ),
      ),
    ),
    isUncertain ? h('p', { class: 'note' }, '~: interval not known.') : null,
  );
}

function tileOf(report: Report, row: Row): Tile {
  const { figure } = row;
  const isLarge = isLargeFigure(figure);
  const { shown } = figure;
  const [p50, p99] = shown.percentiles;
  const rate = isLarge ? shown.bandwidth : `${shown.iops} IOPS`;
  const tail = p99 === null ? [] : [`p99\u00a0${unbroken(p99)}`];
  // The width of the interval is beside the figure.
  const doubts = chipsOf(row).filter(
    ({ text, mood }) => text !== WIDE_INTERVAL && (mood === 'warn' || mood === 'bad'),
  );
  // The latency of a flush is what matters, not how many there were.
  const isFlush = figure.direction === 'sync' && p50 !== null;
  const half = isLarge ? shown.bandwidth_half : shown.iops_half;
  return {
    name: row.phase,
    value: isFlush ? p50 : rate,
    more: [
      ...(isFlush ? ['p50', ...tail, unbroken(rate)] : []),
      half ?? (isFlush ? undefined : shown.doubt),
      row.depth > 0 && !isFlush ? `depth ${row.depth}` : undefined,
      ...(isFlush ? [] : tail),
    ]
      .filter((text) => text !== undefined)
      .join(', '),
    chips: [...doubts, ...unknownMaximum(report, row)],
  };
}

const unbroken = (text: string) => text.replace(' ', '\u00a0');

/** A mark if the search of the probe did not find the maximum of the workload. */
function unknownMaximum(report: Report, { run }: Row): Chip[] {
  const study = run.study === null ? undefined : report.studies[run.study];
  const found = study?.unknown_maxima.find(([name]) => name === run.name);
  return found ? [{ text: 'maximum not known', mood: 'warn', why: found[1] }] : [];
}

function sweepTiles(sweep: Sweep): Tile[] {
  return sweep.curves.flatMap((curve) => {
    const known = curve.cells.flatMap((cell) =>
      cell.iops && cell.basis === 'measured' ? [{ cell, iops: cell.iops }] : [],
    );
    if (known.length === 0) return [];
    const best = known.reduce((most, each) => (each.iops.mean > most.iops.mean ? each : most));
    const isLarge = curve.block_bytes >= 64 << 10 && best.cell.bytes_per_s !== null;
    return [
      {
        name: `${curve.values.join(' ')}, most`,
        value: isLarge
          ? (best.cell.shown?.bandwidth ?? bandwidth(best.cell.bytes_per_s ?? 0))
          : `${best.cell.shown?.iops ?? iops(best.iops.mean)} IOPS`,
        more: [
          (isLarge ? best.cell.shown?.bandwidth_half : best.cell.shown?.iops_half) ??
            best.cell.shown?.doubt,
          `depth ${best.cell.iodepth}`,
        ]
          .filter((text) => text !== undefined)
          .join(', '),
      },
    ];
  });
}

function loadTiles(load: Load): Tile[] {
  const kept = load.points.filter((point) => point.state === 'sustained');
  const [first] = kept;
  const found: Tile[] = [];
  if (load.capacity_iops !== null)
    found.push({
      name: 'capacity',
      value: `${iops(load.capacity_iops)} IOPS`,
      more: 'closed loop',
    });
  if (!first) return found;
  const most = kept.reduce((best, each) => (each.offered_per_s > best.offered_per_s ? each : best));
  const p99 = (point: typeof first) => (point.percentiles_ns[2] === null ? '–' : point.shown[2]!);
  const least = kept.reduce((best, each) =>
    each.offered_per_s < best.offered_per_s ? each : best,
  );
  return [
    ...found,
    {
      name: 'highest rate kept up with',
      value: `${iops(most.offered_per_s)}/s`,
      more: 'open loop',
    },
    { name: 'p99 at that rate', value: p99(most), more: 'from the intended start' },
    { name: `p99 at ${iops(least.offered_per_s)}/s`, value: p99(least), more: 'lightly loaded' },
  ];
}
