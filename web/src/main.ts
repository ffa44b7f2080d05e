// The page: reads the embedded results and draws them.

import { comparison, matches, MEASURES } from './chart/comparison';
import { depthLines, depthSpecs } from './chart/depth';
import { histogram } from './chart/histogram';
import { Panel, showAll } from './chart/panel';
import { percentiles } from './chart/percentiles';
import { promiseSpecs } from './chart/promise';
import { timeline } from './chart/timeline';
import type { Report, Run } from './document';
import { add, h, table } from './dom';
import { capital, moment, quantity } from './format';
import { withError } from './chart/parts';
import { Choice, groupBy, rowsOf, type Row } from './rows';
import { machines, plans, runs } from './section/conditions';
import { findings, lead } from './section/findings';
import { headline } from './section/headline';
import { pivotContent } from './section/pivots';
import { loadContent, sweepContent } from './section/sweeps';
import './style.css';
import { choose, chosen, setPrinting, type Choice as Colours } from './theme';

/** Rows that latency charts show at first: as many as there are colours. */
const DRAWN = 8;
/** Most workloads with a comparison chart each. The table of figures has the others. */
const COMPARED = 16;

interface Section {
  id: string;
  title: string;
  content: (Node | null)[];
}

function start(): void {
  const place = document.getElementById('page');
  const text = document.getElementById('results')?.textContent;
  if (!place || !text) return;
  const report = JSON.parse(text) as Report | string;
  if (typeof report === 'string') {
    place.append(h('main', {}, h('p', {}, 'There are no results in this page.')));
    return;
  }
  draw(place, report);
}

function draw(place: HTMLElement, report: Report): void {
  document.title = report.title;
  const rows = rowsOf(report);
  const sections = [
    report.pivots.length > 0
      ? {
          id: 'pivots',
          title: `By ${report.pivots[0]?.row_label} and ${report.pivots[0]?.column_label}`,
          content: pivotContent(report.pivots, report.kept),
        }
      : null,
    ...report.sweeps.map((sweep, index): Section => ({
      id: `sweep-${index}`,
      title: numbered('Sweep', index, report.sweeps),
      content: sweepContent(sweep, index),
    })),
    ...report.loads.map((load, index): Section => ({
      id: `load-${index}`,
      title: numbered('Latency under load', index, report.loads),
      content: loadContent(load, index),
    })),
    rows.length > 0 ? figuresSection(report, rows) : null,
    promiseSection(report),
    depthSection(report, rows),
    ...report.knees.map((knees, index): Section => ({
      id: `knees-${index}`,
      title: numbered('Maximum at any depth', index, report.knees),
      content: sweepContent(knees, report.sweeps.length + index),
    })),
    comparisonSection(rows),
    spreadSection(report),
    timelineSection(report),
    report.hosts.length > 0
      ? { id: 'conditions', title: 'Machines and targets', content: [machines(report)] }
      : null,
    report.plans.length > 0 ? { id: 'plans', title: 'Plans', content: [plans(report)] } : null,
    report.runs.length > 0 ? { id: 'runs', title: 'Runs', content: [runs(report)] } : null,
  ].filter((section) => section !== null);
  const links = sections.map((section) => h('a', { href: `#${section.id}` }, section.title));
  add(
    place,
    h('a', { class: 'skip', href: '#main' }, 'To the results'),
    h(
      'header',
      {},
      h('div', {}, h('h1', {}, report.title), h('p', {}, about(report))),
      themeButton(),
    ),
    h('nav', { 'aria-label': 'Sections' }, ...links),
    h(
      'main',
      { id: 'main' },
      ...sections.map(({ id, title, content }) =>
        h('section', { id, 'aria-label': title }, h('h2', {}, title), ...content),
      ),
    ),
    h(
      'footer',
      {},
      `${report.program}. Confidence intervals are of 95 % and account for autocorrelation; ` +
        'percentiles are shown where at least ten I/Os lie beyond them.',
    ),
  );
  forPaper();
}

function numbered(title: string, index: number, all: unknown[]): string {
  return all.length > 1 ? `${title} ${index + 1}` : title;
}

function about(report: Report): string {
  if (report.runs.length === 0 && report.kept.length > 0) {
    const begun = report.kept.map((one) => one.started_at_ms).filter((ms) => ms > 0);
    return `${report.kept.length} ${report.kept.length === 1 ? 'result' : 'results'}, ${
      begun.length > 0 ? moment(Math.min(...begun)) : 'simulated'
    }`;
  }
  if (report.runs.length === 0 && report.sweeps.length + report.loads.length > 0)
    return 'from files without their single runs';
  const times = report.runs.map((run) => run.started_at_ms).filter((ms) => ms > 0);
  const when = times.length > 0 ? moment(Math.min(...times)) : 'simulated';
  const measured = report.runs.filter((run) => !run.preparation).length;
  return `${measured} ${measured === 1 ? 'run' : 'runs'}, ${when}`;
}

function themeButton(): HTMLElement {
  const next: { [choice in Colours]: Colours } = { auto: 'light', light: 'dark', dark: 'auto' };
  const label = () => `Colours: ${chosen() === 'auto' ? 'as the system' : chosen()}`;
  const button = h('button', { type: 'button', id: 'theme' }, label());
  button.addEventListener('click', () => {
    choose(next[chosen()]);
    button.textContent = label();
  });
  return button;
}

function figuresSection(report: Report, rows: Row[]): Section {
  const drawn = new Choice();
  // Rows of one workload are adjacent: the first workload of all places, then the second.
  const together = [...groupBy(rows, (row) => row.workload).values()].flat();
  const first = new Set(together.slice(0, DRAWN));
  for (const row of rows) if (first.has(row)) drawn.add(row);
  const list = () => rows.filter((row) => drawn.has(row));
  const panels = [
    new Panel({
      id: 'percentiles',
      title: 'Latency by percentile',
      hint: 'Each nine has the same width: the tail is on the right.',
      draw: () => percentiles(list()),
    }),
    new Panel({
      id: 'histogram',
      title: 'Histogram of latency',
      hint: 'Share of the I/Os per bucket, with eight buckets per power of two.',
      draw: () => histogram(list()),
    }),
  ];
  const found = findings(report);
  return {
    id: 'figures',
    title: 'Figures',
    content: [
      ...lead(report),
      headline(rows, drawn, () => panels.forEach((panel) => panel.update())),
      found && h('h3', {}, 'Findings'),
      found,
      ...panels.map((panel) => panel.element),
    ],
  };
}

function promiseSection(report: Report): Section | null {
  if (report.promises.length === 0) return null;
  const content = report.promises.flatMap((promised, number): (Node | null)[] => {
    const rows = promised.rows.map((row) => [
      row.what,
      quantity(row.promised, row.unit),
      withError(row.measured, row.unit),
      `${row.kept === null ? '' : row.kept ? '✓ ' : '✗ '}${row.verdict}`,
    ]);
    const against = promised.sentence === null ? 'the fastest of each kind on ' : '';
    const caption = `${promised.product}, compared with ${against}${promised.place}. Source: ${
      promised.source
    }`;
    return [
      promised.sentence === null
        ? null
        : h('p', { class: 'lead' }, h('strong', {}, `${promised.place}: `), promised.sentence),
      table({ caption, head: ['figure', 'promised', 'measured', 'verdict'], rows }),
      promised.conditions.length > 0
        ? h('ul', { class: 'findings' }, ...promised.conditions.map((text) => h('li', {}, text)))
        : null,
      grid(promiseSpecs(promised, number).map((spec) => new Panel(spec))),
    ];
  });
  return { id: 'promise', title: 'Promised and measured', content };
}

function depthSection(report: Report, rows: Row[]): Section | null {
  const lines = depthLines(rows);
  if (lines.length === 0) return null;
  return {
    id: 'depth',
    title: 'Over depth',
    content: [grid(depthSpecs(lines, report.promises).map((spec) => new Panel(spec)))],
  };
}

function comparisonSection(rows: Row[]): Section | null {
  const found = matches(rows);
  if (found.length === 0) return null;
  let measure = MEASURES[0]!;
  const places = new Map(
    [...new Set(rows.map((row) => row.run.place))].map((name, index) => [name, index]),
  );
  const select = h(
    'select',
    {},
    ...MEASURES.map((each) => h('option', { value: each.key }, each.title)),
  );
  const panels = found.slice(0, COMPARED).map(
    (match, index) =>
      new Panel({
        id: `comparison-${index}`,
        title: capital(match.workload),
        draw: () => comparison(match, measure, places),
      }),
  );
  select.addEventListener('change', () => {
    measure = MEASURES.find((each) => each.key === select.value) ?? measure;
    panels.forEach((panel) => panel.update());
  });
  const left = found.length - panels.length;
  return {
    id: 'comparison',
    title: 'Side by side',
    content: [
      h('p', {}, h('label', {}, 'Compare by ', select)),
      grid(panels),
      left > 0 ? h('p', {}, `${left} more workloads are in the table of figures.`) : null,
    ],
  };
}

function spreadSection(report: Report): Section | null {
  if (report.spreads.length === 0) return null;
  const share = (percent: number | null) => (percent === null ? '–' : `${percent.toFixed(1)} %`);
  const tables = report.spreads.map((spread) =>
    table({
      caption: spread.title,
      head: ['figure', 'mean', 'runs', 'machines', 'within a machine', 'between machines'],
      rows: spread.rows.map((row) => [
        row.what,
        quantity(row.mean, row.unit),
        row.runs,
        row.machines,
        share(row.within_percent),
        share(row.between_percent),
      ]),
    }),
  );
  const about =
    'Standard deviations in per cent of the mean: between runs of one machine, ' +
    'and between machines in addition.';
  return { id: 'spread', title: 'Spread', content: [h('p', {}, about), ...tables] };
}

function timelineSection(report: Report): Section | null {
  const shown = report.runs.filter(
    (run) => run.series.length > 0 && !run.preparation && !run.of_grid,
  );
  const [first] = shown;
  if (!first) return null;
  let run: Run = first;
  const select = h(
    'select',
    { 'aria-label': 'Run shown over time' },
    ...shown.map((each, index) => h('option', { value: index }, each.name)),
  );
  const panel = new Panel({
    id: 'timeline',
    title: 'Over time',
    controls: [select],
    draw: () => timeline(run, report.promises),
  });
  select.addEventListener('change', () => {
    run = shown[Number(select.value)] ?? first;
    panel.update();
  });
  return { id: 'time', title: 'Over time', content: [panel.element] };
}

function grid(panels: Panel[]): HTMLElement {
  return h('div', { class: 'grid' }, ...panels.map((panel) => panel.element));
}

/** Draws all charts for printing, in light colours and at the width of the page. */
function forPaper(): void {
  window.addEventListener('beforeprint', () => {
    document.body.classList.add('paper');
    showAll();
    setPrinting(true);
  });
  window.addEventListener('afterprint', () => {
    document.body.classList.remove('paper');
    setPrinting(false);
  });
}

start();
