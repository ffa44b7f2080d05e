// Printing: details that matter are opened, charts are low, and a line names what is left out.

import { showAll } from './chart/panel';
import { h } from './dom';
import { setPrinting } from './theme';

/** Details with the runs of a finding, which paper leaves out. */
const EVIDENCE = '.findings li > details';
/** Details that paper shows: figures, limits and findings, but neither plans nor runs. */
const OPENED = [
  `#summary details:not(${EVIDENCE})`,
  'main > section > div > details',
  '#figures > details',
  '#knees > details',
  '#conditions > details',
].join(', ');
/** Class of the details that printing has opened. Paper leaves their charts out. */
const FOR_PAPER = 'for-paper';
/** With more closed details inside a section than this, paper names the section only. */
const NAMED = 3;

/** Draws all charts for printing, in light colours and at the width of the page. */
export function forPaper(): void {
  const rest = h('p', { class: 'left-out' });
  document.querySelector('footer')?.prepend(rest);
  window.addEventListener('beforeprint', () => {
    document.body.classList.add('paper');
    openAll();
    rest.textContent = leftOut();
    setPrinting(true);
    showAll();
  });
  window.addEventListener('afterprint', () => {
    document.body.classList.remove('paper');
    for (const details of document.querySelectorAll<HTMLDetailsElement>(`.${FOR_PAPER}`)) {
      details.classList.remove(FOR_PAPER);
      details.open = false;
    }
    setPrinting(false);
  });
}

/** Opens details, then those that are created inside them. */
function openAll(): void {
  let closed: HTMLDetailsElement[];
  do {
    const all = document.querySelectorAll<HTMLDetailsElement>(OPENED);
    closed = [...all].filter((details) => !details.open);
    closed.forEach(openForPaper);
  } while (closed.length > 0);
}

function openForPaper(details: HTMLDetailsElement): void {
  details.classList.add(FOR_PAPER);
  details.open = true;
  // The event of the browser would come after the page is printed.
  details.dispatchEvent(new Event('toggle'));
}

/** Names the parts of the page that the file has and paper does not. */
function leftOut(): string {
  const charts = document.querySelectorAll(`#devices:not([hidden]) h3, .${FOR_PAPER} figure h3`);
  const hasCharts = document.querySelector('figure') !== null;
  const all = [
    ...[...document.querySelectorAll('main > section')].flatMap(closedIn),
    ...[...charts].map((title) => title.textContent ?? ''),
    ...(hasCharts ? ['a table of each chart'] : []),
  ];
  return all.length === 0
    ? ''
    : `Not printed, but in the HTML file: ${[...new Set(all)].join('; ')}.`;
}

/** Names of the closed details of a section, without those inside others and tables of charts. */
function closedIn(section: Element): string[] {
  const closed = [...section.querySelectorAll('details:not([open])')].filter(
    (details) =>
      !details.closest('.behind') && !details.parentElement?.closest('details:not([open])'),
  );
  const others = closed.filter((details) => !details.matches(EVIDENCE));
  const names = others.map((details) => details.querySelector('summary')?.textContent ?? '');
  const title = section.getAttribute('aria-label') ?? '';
  return [
    ...(names.length > NAMED ? [`${names.length} parts of ${title}`] : names),
    ...(others.length < closed.length ? ['the runs of each finding'] : []),
  ];
}
