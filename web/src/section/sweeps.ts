// Sweeps and load studies: the reader chooses what is drawn over what.

import { curves } from '../chart/sweep';
import { heatMap } from '../chart/heat';
import { loadSpecs } from '../chart/load';
import { Panel } from '../chart/panel';
import type { Load, Sweep } from '../document';
import { h } from '../dom';
import { combinations, has, MEASURES, named, pointsOf, titled, varying, type Measure, type Point } from '../grid';

/** What is drawn: places of axes. */
interface View {
  over: number;
  /** A chart for each of its values; -1 for none. */
  each: number;
  measure: Measure;
}

export function sweepContent(sweep: Sweep, number: number): (Node | null)[] {
  const points = pointsOf(sweep);
  const axes = varying(sweep);
  const depth = sweep.axes.length - 1;
  // Patterns differ most: they get a chart each.
  const patterns = axes.find((axis) => axis !== depth && sweep.axes[axis]?.name === 'rw');
  const others = axes.filter((axis) => axis !== depth);
  const view: View = { over: axes.includes(depth) ? depth : (axes[0] ?? depth), each: others.length > 1 ? (patterns ?? others[0] ?? -1) : -1, measure: MEASURES[0]! };
  const place = h('div', {});
  let panels: Panel[] = [];
  const draw = () => {
    panels.forEach((panel) => panel.remove());
    panels = panelsOf(sweep, points, axes, view, number);
    place.replaceChildren(h('div', { class: 'grid' }, ...panels.map((panel) => panel.element)));
  };
  const name = (axis: number) => sweep.axes[axis]?.name ?? '';
  const select = (label: string, choices: [string, string][], value: string, changed: (value: string) => void) => {
    const element = h('select', {}, ...choices.map(([key, text]) => h('option', { value: key, selected: key === value }, text)));
    element.addEventListener('change', () => {
      changed(element.value);
      draw();
    });
    return h('label', {}, `${label} `, element);
  };
  const over: [string, string][] = axes.map((axis) => [String(axis), name(axis)]);
  draw();
  const sentences = sweep.curves.flatMap((curve) => curve.sentence ?? []);
  return [
    h('p', { class: 'lead' }, sweep.headline),
    h('p', {}, 'Filled points were measured; hollow ones, and cells with a dashed edge and ~, are predicted from them. Bands are 95 % confidence.'),
    sentences.length > 0 ? h('ul', { class: 'findings' }, ...sentences.map((text) => h('li', {}, text))) : null,
    sweep.notes.length > 0 ? h('ul', { class: 'findings' }, ...sweep.notes.map((text) => h('li', {}, text))) : null,
    h(
      'p',
      { class: 'choices' },
      select('Show', MEASURES.map((measure) => [measure.key, measure.title]), view.measure.key, (key) => {
        view.measure = MEASURES.find((measure) => measure.key === key) ?? view.measure;
      }),
      axes.length > 1 ? select('over', over, String(view.over), (axis) => (view.over = Number(axis))) : null,
      axes.length > 1 ? select('a chart for each', [['-1', 'nothing'], ...over], String(view.each), (axis) => (view.each = Number(axis))) : null,
    ),
    place,
  ];
}

function panelsOf(sweep: Sweep, points: Point[], axes: number[], view: View, number: number): Panel[] {
  const { over, measure } = view;
  const apart = view.each >= 0 && view.each !== over ? [view.each] : [];
  const others = axes.filter((axis) => axis !== over && !apart.includes(axis));
  const lines = combinations(points, apart).map((combination, index) => {
    const chosen = points.filter((point) => has(point, apart, combination));
    return new Panel({
      id: `sweep-${number}-curves-${index}`,
      title: titleOf(`${measure.title} over ${sweep.axes[over]?.name}`, sweep, apart, combination),
      draw: () => curves(sweep, chosen, over, others, measure),
    });
  });
  const [down] = others;
  if (down === undefined) return lines;
  // Two axes make a map; there is one for each combination of the rest.
  const rest = axes.filter((axis) => axis !== over && axis !== down);
  const maps = combinations(points, rest).map((combination, index) => {
    const chosen = points.filter((point) => has(point, rest, combination));
    return new Panel({
      id: `sweep-${number}-map-${index}`,
      title: titleOf(`${measure.title} over ${sweep.axes[over]?.name} and ${sweep.axes[down]?.name}`, sweep, rest, combination),
      draw: () => mapOf(sweep, chosen, over, down, measure),
    });
  });
  return [...lines, ...maps];
}

function titleOf(what: string, sweep: Sweep, axes: number[], values: string[]): string {
  const words = values.map((value, index) => named(sweep.axes[axes[index] ?? 0], value));
  return words.length === 0 ? what : `${words.join(' ')}: ${what}`;
}

function mapOf(sweep: Sweep, points: Point[], over: number, down: number, measure: Measure) {
  const [columns, rows] = [sweep.axes[over], sweep.axes[down]];
  const cells = points.map((point) => ({
    column: columns?.values.indexOf(point.values[over] ?? '') ?? 0,
    row: rows?.values.indexOf(point.values[down] ?? '') ?? 0,
    value: measure.of(point.cell)?.mean ?? null,
    predicted: point.cell.basis === 'predicted',
  }));
  const axes = { columns: columns?.values ?? [], rows: rows?.values ?? [], columnTitle: columns ? titled(columns) : '', rowTitle: rows ? titled(rows) : '' };
  return heatMap(cells, axes, measure.unit, measure.title);
}

export function loadContent(load: Load, number: number): (Node | null)[] {
  return [
    h('p', { class: 'lead' }, load.headline),
    load.notes.length > 0 ? h('ul', { class: 'findings' }, ...load.notes.map((text) => h('li', {}, text))) : null,
    h('div', { class: 'grid' }, ...loadSpecs(load, number).map((spec) => new Panel(spec).element)),
  ];
}
