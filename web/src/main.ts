// The page: reads the embedded results and draws them.

import { comparison, matches, MEASURES } from './chart/comparison';
import { depthLines, depthSpecs, searchLines } from './chart/depth';
import { histogram } from './chart/histogram';
import { grid, Panel, showFirst } from './chart/panel';
import { hasCurve, percentiles } from './chart/percentiles';
import { distinctDashes } from './chart/plot';
import { styledRows, workloadStyles, type Styles } from './chart/styles';
import { seriesOfPart, timeline } from './chart/timeline';
import { cleaned } from './clean';
import type { Report, Run } from './document';
import { add, h, table } from './dom';
import { capital, listedNames } from './format';
import { forPaper } from './paper';
import { Choice, dashOfWorkload, groupBy, mainRows, rowsOf, type Row } from './rows';
import { comparisonTable } from './section/comparisons';
import { machines, plans, runs } from './section/conditions';
import { findings } from './section/findings';
import { headline } from './section/headline';
import { pivotContent } from './section/pivots';
import { promiseContent } from './section/promises';
import {
  about,
  expectationList,
  kneeAnswers,
  suiteVerdicts,
  tiles,
  verdicts,
  winnerSentences,
} from './section/summary';
import { loadContent, sweepContent } from './section/sweeps';
import './style.css';
import { loadName, prepared, subjectsOf } from './subjects';
import { choose, chosen, type Choice as Colours } from './theme';

/** Rows that latency charts show at first: as many as there are colours. */
const DRAWN = 6;
/** Most workloads with a comparison chart each. The table of figures has the others. */
const COMPARED = 16;
/** With more verdicts, winners or knees than this, all are folded. */
const VERDICTS = 3;

interface Section {
  id: string;
  title: string;
  content: () => (Node | null)[];
  /** Whether the content is folded: details that few readers need. */
  isFolded?: boolean;
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
  draw(place, prepared(cleaned(report)));
}

function draw(place: HTMLElement, report: Report): void {
  document.title = report.title;
  const rows = rowsOf(report);
  const sections = sectionsOf(report, rows);
  const links = sections.map(({ id, title }) => h('a', { href: `#${id}` }, title));
  add(
    place,
    h('a', { class: 'skip', href: '#main' }, 'To the results'),
    h(
      'header',
      {},
      h('div', {}, h('h1', {}, report.title), h('p', {}, about(report))),
      themeButton(),
    ),
    h('nav', { 'aria-label': 'Contents' }, ...links),
    h('main', { id: 'main' }, ...sections.map(sectionElement)),
    h(
      'footer',
      {},
      `${report.program}. Confidence intervals are of 95 % and account for autocorrelation; ` +
        'percentiles are shown where at least ten I/Os lie beyond them.',
    ),
  );
  showFirst();
  forPaper();
  window.addEventListener('hashchange', reveal);
  place.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (link?.hash && link.hash === location.hash) reveal();
  });
  if (location.hash !== '') reveal();
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

function sectionElement({ id, title, content, isFolded }: Section): HTMLElement {
  if (!isFolded) return h('section', { id, 'aria-label': title }, h('h2', {}, title), ...content());
  const fold = h('details', {}, h('summary', {}, h('h2', {}, title)));
  fold.addEventListener('toggle', () => {
    if (fold.open && fold.childElementCount === 1) add(fold, ...content());
  });
  return h('section', { id, 'aria-label': title, class: 'folded' }, fold);
}

/** Opens what the address points to, and all around it. */
function reveal(): void {
  const id = location.hash.slice(1);
  // Jobs of plans are created when their section is opened.
  const section = document.getElementById(/^plan-\d+$/.test(id) ? 'plans' : id);
  const open = (details: Element | null | undefined) => {
    if (!(details instanceof HTMLDetailsElement) || details.open) return;
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
  };
  open(section?.querySelector(':scope > details'));
  const place = document.getElementById(id);
  for (let at: Element | null | undefined = place; at; at = at.parentElement?.closest('details'))
    open(at);
  place?.scrollIntoView();
}

function sectionsOf(report: Report, rows: Row[]): Section[] {
  const searched = searchLines(report.knees);
  const subjects = new Set(searched.map((line) => line.subject));
  // The search of a probe has the depths of its phases too.
  const lines = [...searched, ...depthLines(rows.filter((row) => !subjects.has(row.run.subject)))];
  const styles = workloadStyles(mainRows(rows, DRAWN), lines, rows);
  const names = numbered(report);
  return [
    summarySection(report, rows),
    pivotSection(report),
    chartSection(report, rows, lines, styles),
    ...report.sweeps.map((sweep, index): Section => ({
      id: `sweep-${index}`,
      title: names('Sweep', sweep.subject, report.sweeps.length),
      content: () => sweepContent(sweep, index),
      isFolded: index >= 2,
    })),
    ...report.loads.map((load, index): Section => ({
      id: `load-${index}`,
      title: names('Latency under load', loadName(load), report.loads.length),
      content: () => loadContent(load, index),
      isFolded: index >= 2,
    })),
    promiseSection(report),
    figuresSection(rows, subjectsOf(report), styles),
    searchSection(report),
    comparisonSection(report, rows),
    spreadSection(report),
    report.hosts.length > 0
      ? section('conditions', 'Machines and targets', () => machines(report))
      : null,
    report.plans.length > 0 ? section('plans', 'Plans', () => plans(report)) : null,
    report.runs.length > 0 ? section('runs', 'Runs', () => runs(report)) : null,
  ].filter((each) => each !== null);
}

function section(id: string, title: string, content: () => Node): Section {
  return { id, title, content: () => [content()], isFolded: true };
}

/** Titles of sections of several results name their subject. */
function numbered(report: Report): (title: string, subject: string, count: number) => string {
  const isOne = subjectsOf(report).length < 2;
  return (title, subject, count) => (isOne && count < 2 ? title : `${title}: ${subject}`);
}

function summarySection(report: Report, rows: Row[]): Section | null {
  const suites = suiteVerdicts(report);
  const judged = expectationList(report);
  const said = verdicts(report);
  const knees = kneeAnswers(report);
  const winners = winnerSentences(report);
  const found = findings(report);
  const compared = comparisonTable(report, rows);
  const shown = subjectsOf(report).length > 1 ? compared : tiles(report, rows);
  const answers = [...knees, ...said];
  if (!suites && !judged && answers.length === 0 && !found && !shown) return null;
  const isMany = answers.length > VERDICTS;
  return {
    id: 'summary',
    title: subjectsOf(report).length > 1 ? 'Comparison' : 'Summary',
    content: () => [
      suites,
      judged,
      ...(winners.length > VERDICTS ? [] : winners),
      ...(isMany ? [] : answers),
      shown,
      winners.length > VERDICTS
        ? h('details', {}, h('summary', {}, 'Each target beside the first'), ...winners)
        : null,
      isMany
        ? h('details', {}, h('summary', {}, `What ${answers.length} studies found`), ...answers)
        : null,
      found && h('h3', {}, 'Findings'),
      found,
    ],
  };
}

function pivotSection(report: Report): Section | null {
  const [first] = report.pivots;
  if (!first) return null;
  return {
    id: 'pivots',
    title: `By ${first.row_label} and ${first.column_label}`,
    content: () => pivotContent(report.pivots, report.kept),
  };
}

/** One chart for each question. */
function chartSection(
  report: Report,
  rows: Row[],
  lines: ReturnType<typeof depthLines>,
  styles: Styles,
): Section | null {
  const specs = depthSpecs(lines, report.promises, subjectsOf(report), styles);
  if (rows.length === 0 && specs.length === 0) return null;
  const [shown, rest] = [specs.slice(0, 4), specs.slice(4)];
  return {
    id: 'charts',
    title: 'Charts',
    content: () => [
      h(
        'div',
        { class: 'grid charts' },
        ...shown.map((spec) => new Panel(spec).element),
        ...(rows.length > 0 ? [percentilePanel(rows, subjectsOf(report), styles)] : []),
        ...timePanels(report).map((panel) => panel.element),
      ),
      rest.length > 0
        ? foldedPanels(`${rest.length} more charts over depth`, () =>
            rest.map((spec) => new Panel(spec)),
          )
        : null,
    ],
  };
}

function foldedPanels(title: string, panels: () => Panel[]): HTMLElement {
  const fold = h('details', { class: 'more' }, h('summary', {}, title));
  fold.addEventListener('toggle', () => {
    if (fold.open && fold.childElementCount === 1) fold.append(grid(panels()));
  });
  return fold;
}

/**
 * Latency of the rows of one workload, of at most as many subjects as there are colours. At first,
 * it is the workload that `plot` draws: the first main one of several subjects.
 */
function percentilePanel(all: Row[], subjects: string[], styles: Styles): HTMLElement {
  const rows = all.filter(hasCurve);
  const workloads = [...groupBy(rows, (row) => row.phase)].filter(
    ([, group]) => new Set(group.map((row) => row.run.subject)).size > 1,
  );
  const shared = new Map(workloads);
  const [main] = rows.filter((row) => shared.has(row.phase)).sort((a, b) => a.rank - b.rank);
  let candidates = shared.get(main?.phase ?? '') ?? rows;
  let drawn = slotted(candidates, subjects, styles);
  const select = h(
    'select',
    { 'aria-label': 'Workload of the percentiles' },
    ...workloads.map(([phase], index) =>
      h('option', { value: index, selected: phase === main?.phase }, phase),
    ),
  );
  const panel = new Panel({
    id: 'percentiles',
    title: 'Latency by percentile',
    hint: 'Each nine has the same width: the tail is on the right.',
    controls: workloads.length > 1 ? [select] : [],
    draw: () => ({ ...percentiles(drawn), note: notDrawn(candidates, drawn) }),
  });
  select.addEventListener('change', () => {
    candidates = workloads[Number(select.value)]?.[1] ?? rows;
    drawn = slotted(candidates, subjects, styles);
    panel.update();
  });
  return panel.element;
}

/** Names the rows that have no curve. */
function notDrawn(rows: Row[], drawn: Row[]): string {
  const drawnNames = new Set(drawn.map((row) => row.name));
  const rest = rows.filter((row) => !drawnNames.has(row.name)).map((row) => row.name);
  if (rest.length === 0) return '';
  return `Not drawn: ${listedNames(rest)}. The section Figures draws any row.`;
}

/**
 * The main rows with their colours. Of a single subject, each workload has one style. If there are
 * several subjects, each has one colour and each workload one line style. Subjects with one row
 * each differ in their style too.
 */
function slotted(rows: Row[], subjects: string[], styles: Styles): Row[] {
  const drawn = mainRows(rows, DRAWN);
  if (subjects.length < 2) return styledRows(drawn, styles);
  const slotOf = (row: Row) => Math.max(0, subjects.indexOf(row.run.subject));
  const coloured = drawn.map((row) => ({ ...row, slot: slotOf(row) }));
  if (new Set(drawn.map((row) => row.run.subject)).size === drawn.length) {
    const dashes = distinctDashes(coloured.map(({ slot }) => ({ slot })));
    return coloured.map((row, index) => ({ ...row, dash: dashes[index] }));
  }
  const styled: Row[] = [];
  for (const row of coloured) styled.push({ ...row, dash: dashOfWorkload(row, styled) });
  return styled;
}

function figuresSection(rows: Row[], subjects: string[], styles: Styles): Section | null {
  if (rows.length === 0) return null;
  return {
    id: 'figures',
    title: 'Figures',
    isFolded: true,
    content: () => {
      const drawn = new Choice(subjects, styles);
      // Rows of one workload are adjacent: the first workload of all subjects, then the second.
      const together = [...groupBy(rows, (row) => row.workload).values()].flat();
      const first = new Set(mainRows(together, DRAWN));
      for (const row of rows) if (first.has(row)) drawn.add(row);
      const list = () => rows.filter((row) => drawn.has(row));
      const panels = [
        new Panel({
          id: 'selected',
          title: 'Latency of the selected rows by percentile',
          draw: () => percentiles(list()),
        }),
        new Panel({
          id: 'histogram',
          title: 'Histogram of latency',
          hint: 'All bins have the same width on the axis: five per power of two.',
          draw: () => histogram(list()),
        }),
      ];
      return [headline(rows, drawn, () => panels.forEach((panel) => panel.update())), grid(panels)];
    },
  };
}

function promiseSection(report: Report): Section | null {
  return report.promises.length === 0
    ? null
    : { id: 'promise', title: 'Promised and measured', content: () => promiseContent(report) };
}

/** Findings of the searches of probes, in sentences. */
function searchSection(report: Report): Section | null {
  const isOne = report.knees.length === 1;
  const said = report.knees.flatMap((knees) =>
    knees.curves.flatMap(({ sentence }) =>
      sentence === null
        ? []
        : [`${isOne ? '' : `${knees.subject}: `}${sentence}`],
    ),
  );
  if (said.length === 0) return null;
  const list = () => h('ul', { class: 'findings' }, ...said.map((text) => h('li', {}, text)));
  return section('knees', 'Maximum at any depth', list);
}

function comparisonSection(report: Report, rows: Row[]): Section | null {
  const found = matches(rows);
  if (found.length === 0) return null;
  const content = () => {
    let measure = MEASURES[0]!;
    const places = new Map(subjectsOf(report).map((name, index) => [name, index]));
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
    return [
      h('p', { class: 'choices' }, h('label', {}, 'Compare by ', select)),
      grid(panels),
      left > 0 ? h('p', {}, `${left} more workloads are in the table of figures.`) : null,
    ];
  };
  // Where a table compares the subjects, the bars are details.
  const isFolded = found.length > 1 || comparisonTable(report, rows) !== null;
  return { id: 'comparison', title: 'Side by side', content, isFolded };
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
        row.mean,
        row.runs,
        row.machines,
        share(row.within_percent),
        share(row.between_percent),
      ]),
    }),
  );
  const about =
    'Standard deviations in per cent of the mean: between runs of one machine, ' +
    'and between machines in addition. ~: interval not known.';
  return { id: 'spread', title: 'Spread', content: () => [h('p', {}, about), ...tables] };
}

/** The I/O of a run over time, and beside it the activity of devices and machine. */
function timePanels(report: Report): Panel[] {
  const shown = report.runs.filter(
    (run) => run.series.length > 0 && !run.preparation && !run.of_grid,
  );
  const [first] = shown;
  if (!first) return [];
  let run: Run = first;
  const isOne = new Set(shown.map((each) => each.subject)).size === 1;
  const select = h(
    'select',
    { 'aria-label': 'Run shown over time' },
    ...shown.map((each, index) =>
      h('option', { value: index }, isOne ? each.name : `${each.subject}: ${each.name}`),
    ),
  );
  const hasMachine = (each: Run) => seriesOfPart(each, 'machine').length > 0;
  const panels = [
    new Panel({
      id: 'timeline',
      title: 'Over time',
      controls: shown.length > 1 ? [select] : [],
      draw: () => timeline(run, report.promises, 'run'),
    }),
  ];
  const devices = shown.some(hasMachine)
    ? new Panel({
        id: 'devices',
        title: 'Devices and machine at that time',
        draw: () => timeline(run, report.promises, 'machine'),
      })
    : null;
  if (devices) panels.push(devices);
  // Simulated runs have no devices and no machine.
  const hide = () => devices?.element.toggleAttribute('hidden', !hasMachine(run));
  hide();
  select.addEventListener('change', () => {
    run = shown[Number(select.value)] ?? first;
    hide();
    panels.forEach((panel) => panel.update());
  });
  return panels;
}

start();
