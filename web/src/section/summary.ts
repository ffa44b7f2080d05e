// The first screen: what was measured where, the answer, and reasons for doubt.

import type { Fact, Load, Report, Sweep, Winner } from '../document';
import { folded, h } from '../dom';
import { bandwidth, bytes, capital, duration, iops, moment } from '../format';
import { isLargeFigure, groupBy, type Row } from '../rows';
import { deviceName, loadName, subjectsOf } from '../subjects';

/** Most tiles. More figures are in the table only. */
const TILES = 12;
/** Most rows and columns of the table that compares subjects. */
const COMPARED_SUBJECTS = 16;
const COMPARED_WORKLOADS = 8;
/** Verdicts of suites that are shown at once. The others are folded. */
const SUITES = 6;

/** Host, device, file system, kernel and date in one line. */
export function about(report: Report): string {
  const hosts = report.hosts.flatMap((host) => (host['architecture'] === '' ? [] : [host]));
  const text = (fact: Fact | undefined, name: string) => String(fact?.[name] ?? '');
  const [host] = hosts;
  const targets = report.targets.flat();
  const devices = [...new Set(targets.map(described))].filter((name) => name !== '');
  const kernels = [...new Set(hosts.map((one) => text(one, 'kernel')))].filter(Boolean);
  const parts = [
    hosts.length > 1 ? `${hosts.length} hosts` : text(host, 'hostname'),
    devices.length > 3 ? `${devices.length} devices` : devices.join('; '),
    kernels.length > 2 ? `${kernels.length} kernels` : kernels.map((one) => `Linux ${one}`).join(),
    measuredAt(report),
    counted(report),
  ];
  return parts.filter((part) => part !== '').join(' · ');
}

/** Device, model and file system: `nvme0n1 (Samsung SSD 980), ext4`. */
function described(target: Fact): string {
  const [device] = (target['devices'] ?? []) as { model?: string | null }[];
  const [name, ...others] = deviceName(target).split(', ');
  const model = device?.model ? ` (${device.model.trim()})` : '';
  return [`${name}${model}`, ...others].filter((text) => text !== '').join(', ');
}

function measuredAt(report: Report): string {
  const all = [...report.runs, ...report.kept].map((one) => one.started_at_ms);
  const times = all.filter((ms) => ms > 0);
  if (all.length === 0) return '';
  return times.length > 0 ? moment(Math.min(...times)) : 'simulated';
}

function counted(report: Report): string {
  const measured = report.runs.filter((run) => !run.preparation).length;
  const many = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;
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
  const lines = suites.map(({ name, target, verdict, passed }) => {
    const [mark, mood] = passed === null ? ['?', 'warn'] : passed ? ['✓', 'good'] : ['✗', 'bad'];
    const what = isNamed([name, target]) ? '' : `${name}, ${target}: `;
    return h('p', {}, h('span', { class: `chip ${mood}` }, mark), ' ', what, strong(verdict));
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
}

/** Headline figures of a report about one subject. */
export function tiles(report: Report, rows: Row[]): HTMLElement | null {
  const shown = [
    ...rows.map(tileOf),
    ...report.sweeps.flatMap(sweepTiles),
    ...report.loads.flatMap(loadTiles),
  ];
  if (shown.length === 0 || shown.length > TILES) return null;
  return h(
    'dl',
    { class: 'tiles' },
    ...shown.map((tile) =>
      h('div', {}, h('dt', {}, tile.name), h('dd', {}, tile.value, h('small', {}, tile.more))),
    ),
  );
}

function tileOf(row: Row): Tile {
  const { figure } = row;
  const isLarge = isLargeFigure(figure);
  const { shown } = figure;
  const value = isLarge ? shown.bandwidth : `${shown.iops} IOPS`;
  const half = shown.iops_half === null ? '' : `${shown.iops_half}, `;
  const known = isLarge ? interval(figure.bytes_per_s) : half;
  return { name: row.phase, value, more: [known, depthOf(row), tailOf(row)].join('') };
}

const depthOf = (row: Row) => (row.depth > 0 ? `depth ${row.depth}` : '');

function tailOf(row: Row): string {
  const tail = row.figure.shown.percentiles[1];
  return tail === null ? '' : `, p99\u00a0${tail.replace(' ', '\u00a0')}`;
}

function interval(rate: { mean: number; error: number | null }): string {
  if (rate.error === null || rate.mean <= 0) return '';
  const share = (100 * rate.error) / rate.mean;
  return `± ${share < 0.095 ? '<0.1' : share.toFixed(1)} %, `;
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
          ? (best.cell.shown ?? bandwidth(best.cell.bytes_per_s ?? 0))
          : `${best.cell.shown ?? iops(best.iops.mean)} IOPS`,
        more: `${interval(best.iops)}depth ${best.cell.iodepth}`,
      },
    ];
  });
}

function loadTiles(load: Load): Tile[] {
  const kept = load.points.filter((point) => point.kept_up);
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
  const p99 = (point: typeof first) => point.percentiles_ns[2] ?? null;
  const told = (point: typeof first) => (p99(point) === null ? '–' : duration(p99(point) ?? 0));
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
    { name: 'p99 at that rate', value: told(most), more: 'from the intended start' },
    { name: `p99 at ${iops(least.offered_per_s)}/s`, value: told(least), more: 'lightly loaded' },
  ];
}

/** The same workloads of several subjects: a row for each, with the best of a column marked. */
export function comparisonTable(report: Report, rows: Row[]): HTMLElement | null {
  const subjects = subjectsOf(report).filter((name) =>
    rows.some((row) => row.run.subject === name),
  );
  const workloads = [...groupBy(rows, (row) => `${row.phase}\n${row.workload}`)]
    .map(([, group]) => group)
    .filter((group) => new Set(group.map((row) => row.run.subject)).size > 1)
    .slice(0, COMPARED_WORKLOADS);
  if (subjects.length < 2 || subjects.length > COMPARED_SUBJECTS || workloads.length === 0)
    return null;
  const head = workloads.map((group) => {
    const [row] = group;
    return h(
      'th',
      { scope: 'col' },
      row?.phase ?? '',
      h('small', {}, row && isLargeFigure(row.figure) ? 'bandwidth, p99' : 'IOPS, p99'),
    );
  });
  const lines = subjects.map((subject) => {
    const cells = workloads.map((group) => {
      const row = group.find((each) => each.run.subject === subject);
      return row ? compared(row, group) : h('td', {}, '–');
    });
    return h('tr', {}, h('th', { scope: 'row' }, subject), ...cells);
  });
  return h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Comparison of targets' },
    h(
      'table',
      { class: 'compared' },
      h('caption', {}, 'The highest rate of each column is bold; bars are shares of it.'),
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Target'), ...head)),
      h('tbody', {}, ...lines),
    ),
  );
}

function compared(row: Row, group: Row[]): HTMLElement {
  const isLarge = isLargeFigure(row.figure);
  const rate = (each: Row) => (isLarge ? each.figure.bytes_per_s : each.figure.iops).mean;
  const most = Math.max(...group.map(rate));
  const share = most > 0 ? (100 * rate(row)) / most : 0;
  const { shown } = row.figure;
  const text = isLarge ? shown.bandwidth : shown.iops;
  const cell = h(
    'td',
    {},
    rate(row) >= most * 0.995 ? h('strong', {}, text) : text,
    h('small', {}, shown.percentiles[1] ?? '–'),
  );
  cell.style.setProperty('--share', `${Math.max(1, share).toFixed(1)}%`);
  return cell;
}
