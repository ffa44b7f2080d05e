// The table of figures: measured values, their confidence, and findings against them.

import { percentile, type Figure } from '../document';
import { h } from '../dom';
import { duration } from '../format';
import type { Choice, Row } from '../rows';

export interface Chip {
  text: string;
  mood: 'good' | 'warn' | 'bad' | 'plain';
  why: string;
}

/** Mark of a figure whose interval is wide. */
export const WIDE_INTERVAL = 'wide interval';
/** An interval wider than this share of the mean on either side is marked. */
const WIDE = 0.05;
/** With more rows than this, the table has a filter. */
const MANY = 20;

const KINDS: { [kind: string]: string } = {
  served_from_cache: 'served from cache',
  unwritten_data: 'unwritten data',
  generator: 'bottleneck: CPUs of the client',
  steal: 'stolen CPU time',
  clock_disturbed: 'disturbed clock',
  stopped: 'stopped process',
  throttled: 'bottleneck: throttle',
  allowance: 'bottleneck: throttle (inferred)',
  interference: 'other users',
  cluster_degraded: 'OSDs down',
  cluster_busy: 'recovery or scrub',
  lock_contention: 'bottleneck: locks in the file system',
  slow_osd: 'bottleneck: one slow OSD',
  device: 'bottleneck: device',
  queue_depth: 'bottleneck: queue depth',
  network: 'bottleneck: network or server',
  osds: 'bottleneck: OSDs',
  job_limit: 'bottleneck: the job',
  unclear: 'bottleneck: none found',
  fallback: 'another engine',
  unsteady: 'not steady',
};

/** Courses of a rate, in the terminal's words. */
const SHAPES: { [shape: string]: Omit<Chip, 'text'> } = {
  steady: {
    mood: 'good',
    why: 'The rate was steady: within 20 % of its mean, with a drift below 10 % (SNIA).',
  },
  noisy: {
    mood: 'warn',
    why: 'The rate was steady (SNIA), but its interval is not known or wide, or it varied much.',
  },
  drifting: { mood: 'warn', why: 'The rate was not steady (SNIA), without a trend.' },
  falling: { mood: 'warn', why: 'The rate was not steady (SNIA): it fell during the run.' },
  rising: { mood: 'warn', why: 'The rate was not steady (SNIA): it rose during the run.' },
  'not steady': {
    mood: 'warn',
    why:
      'The rate was not steady: it varied by more than 20 % of its mean, ' +
      'or drifted by more than 10 % (SNIA).',
  },
  short: {
    mood: 'plain',
    why: 'Too few intervals of this workload alone to tell whether the rate was steady.',
  },
  failed: { mood: 'bad', why: 'An error ended the run.' },
};

/** The course of a rate. A run that is no probe has no word of its own. */
function shapeOf({ shape, settled, direction }: Figure): string | null {
  if (shape !== null) return shape;
  if (settled !== null) return settled ? 'steady' : 'not steady';
  return direction === 'sync' ? null : 'short';
}

/** Verdicts that name the bottleneck of a healthy run: no warning. */
const PLAIN = new Set([
  'fallback',
  'allowance',
  'device',
  'queue_depth',
  'network',
  'osds',
  'job_limit',
  'unclear',
]);

export function verdictName(kind: string): string {
  return KINDS[kind] ?? kind.replaceAll('_', ' ');
}

export function chipsOf(row: Row): Chip[] {
  const { figure, run } = row;
  const chips: Chip[] = [];
  if (run.failures.length > 0)
    chips.push({ text: 'I/O error', mood: 'bad', why: run.failures.join(' ') });
  for (const verdict of run.verdicts) {
    if (verdict.kind === 'unsteady' && figure.settled === false) continue;
    if (!chips.some((chip) => chip.text === verdictName(verdict.kind))) {
      chips.push({
        text: verdictName(verdict.kind),
        mood: PLAIN.has(verdict.kind) ? 'plain' : 'warn',
        why: verdict.evidence,
      });
    }
  }
  const shape = shapeOf(figure);
  const course = shape === null ? undefined : SHAPES[shape];
  if (shape !== null && course) chips.push({ text: shape, ...course });
  const isWide = figure.iops.error !== null && figure.iops.error > WIDE * figure.iops.mean;
  if (figure.sure === false)
    chips.push({
      text: WIDE_INTERVAL,
      mood: isWide ? 'warn' : 'plain',
      why: 'The 95 % confidence interval was wider than the requested precision when time ran out.',
    });
  if (figure.sure === null && isWide) {
    chips.push({
      text: WIDE_INTERVAL,
      mood: 'warn',
      why: 'The 95 % confidence interval is wider than 5 % of the mean on either side.',
    });
  }
  return chips;
}

interface Column {
  title: string;
  value: (row: Row) => number | string | null;
  cell: (row: Row) => (Node | string)[];
}

/** The table with a check box per row. `changed` is called after a change of the selection. */
export function headline(rows: Row[], chosen: Choice, changed: () => void): HTMLElement {
  const columns = columnsOf(rows);
  const body = h('tbody');
  const lines = rows.map((row) => ({ row, line: lineOf(row, columns, chosen, changed) }));
  body.append(...lines.map(({ line }) => line));
  const heads = columns.map((column) => headOf(column, lines, body));
  const table = h(
    'table',
    { class: 'headline' },
    h(
      'caption',
      {},
      h(
        'span',
        {},
        'Means with 95 % confidence intervals; ~: interval not known. ' +
          'The latency charts show the selected rows.',
      ),
    ),
    h(
      'thead',
      {},
      h('tr', {}, h('th', { scope: 'col' }, h('span', { class: 'unseen' }, 'drawn')), ...heads),
    ),
    body,
  );
  const scroll = h(
    'div',
    {
      class: rows.length > MANY ? 'scroll tall' : 'scroll',
      tabindex: 0,
      role: 'region',
      'aria-label': 'Table of figures',
    },
    table,
  );
  return h('div', {}, rows.length > MANY ? filter(lines) : null, scroll);
}

function columnsOf(rows: Row[]): Column[] {
  const ns = (title: string, of: (figure: Figure) => number | null): Column => ({
    title,
    value: (row) => of(row.figure),
    cell: (row) => [of(row.figure) === null ? '–' : duration(of(row.figure) ?? 0)],
  });
  const tail = (title: string, share: number, index: 0 | 1 | 2): Column => ({
    title,
    value: (row) => percentile(row.figure.latency, share),
    cell: (row) => [row.figure.shown.percentiles[index] ?? '–'],
  });
  const columns: Column[] = [
    {
      title: 'Workload',
      value: (row) => row.name,
      cell: (row) => [row.name, h('small', {}, how(row), jobFile(row))],
    },
    {
      title: 'IOPS',
      value: (row) => row.figure.iops.mean,
      cell: (row) => {
        const { iops, shown } = row.figure;
        return iops.mean > 0 ? rateCell(shown.iops, shown.iops_half) : ['–'];
      },
    },
    {
      title: 'Bandwidth',
      value: (row) => row.figure.bytes_per_s.mean,
      cell: (row) => {
        const { bytes_per_s: rate, shown } = row.figure;
        return rate.mean > 0 ? rateCell(shown.bandwidth, shown.bandwidth_half) : ['–'];
      },
    },
    {
      title: 'Mean latency',
      value: (row) => row.figure.latency.mean_ns,
      cell: (row) => [row.figure.shown.mean ?? '–'],
    },
    tail('p50', 0.5, 0),
    tail('p99', 0.01, 1),
    tail('p99.9', 0.001, 2),
    ns('Longest', (figure) => (figure.latency.count > 0 ? figure.latency.max_ns : null)),
    {
      title: 'Verdict',
      value: (row) =>
        chipsOf(row)
          .map((chip) => chip.text)
          .join(' '),
      cell: (row) =>
        chipsOf(row).map((chip) =>
          h('span', { class: `chip ${chip.mood}`, title: chip.why }, chip.text),
        ),
    },
  ];
  const anyBytes = rows.some((row) => row.figure.bytes_per_s.mean > 0);
  return anyBytes ? columns : columns.filter((column) => column.title !== 'Bandwidth');
}

/** A link to the job file that repeats the run. */
function jobFile(row: Row): Node | string {
  const { plan } = row.run;
  return plan === null
    ? ''
    : h('span', {}, ' · ', h('a', { href: `#plan-${plan}` }, 'fio command'));
}

function how(row: Row): string {
  const { figure } = row;
  const engine = figure.engine === '' ? 'several engines' : figure.engine;
  const direct = figure.direct === null ? '' : figure.direct ? ', O_DIRECT' : ', page cache';
  return figure.direction === 'sync'
    ? `${row.workload.split(',')[0]}`
    : `${row.workload}, ${engine}${direct}`;
}

/** A rate, and half its interval. */
function rateCell(text: string, half: string | null): (Node | string)[] {
  return half === null ? [text] : [text, h('small', {}, half)];
}

function lineOf(
  row: Row,
  columns: Column[],
  chosen: Choice,
  changed: () => void,
): HTMLTableRowElement {
  const box = h('input', {
    type: 'checkbox',
    'aria-label': `Draw ${row.name}`,
    checked: chosen.has(row),
  });
  box.addEventListener('change', () => {
    if (box.checked) chosen.add(row);
    else chosen.delete(row);
    changed();
  });
  const cells = columns.map((column, index) =>
    index === 0 ? h('th', { scope: 'row' }, ...column.cell(row)) : h('td', {}, ...column.cell(row)),
  );
  return h('tr', {}, h('td', { class: 'tick' }, box), ...cells);
}

/** A heading that sorts the table by its column. */
function headOf(
  column: Column,
  lines: { row: Row; line: HTMLElement }[],
  body: HTMLElement,
): HTMLElement {
  const button = h('button', { type: 'button' }, column.title);
  const head = h('th', { scope: 'col' }, button);
  button.addEventListener('click', () => {
    const down = head.getAttribute('aria-sort') !== 'descending';
    for (const other of head.parentElement?.children ?? []) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const sorted = [...lines].sort(
      (a, b) => compare(column.value(a.row), column.value(b.row)) * (down ? -1 : 1),
    );
    body.append(...sorted.map(({ line }) => line));
  });
  return head;
}

function compare(a: number | string | null, b: number | string | null): number {
  if (typeof a === 'string' || typeof b === 'string')
    return String(a).localeCompare(String(b), 'en', { numeric: true });
  return (a ?? -Infinity) - (b ?? -Infinity);
}

function filter(lines: { row: Row; line: HTMLElement }[]): HTMLElement {
  const input = h('input', { type: 'search', placeholder: 'e.g. randread nvme' });
  const count = h('span', { 'aria-live': 'polite' }, `${lines.length} rows`);
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const { row, line } of lines) {
      const text =
        `${row.name} ${row.workload} ${row.figure.rw} ${row.figure.engine} ${Object.entries(
          row.run.labels,
        ).join(' ')} ${line.lastElementChild?.textContent}`.toLowerCase();
      line.hidden = !words.every((word) => text.includes(word));
      if (!line.hidden) shown += 1;
    }
    count.textContent = `${shown} of ${lines.length} rows`;
  });
  return h('p', { class: 'filter' }, h('label', {}, 'Filter ', input), ' ', count);
}
