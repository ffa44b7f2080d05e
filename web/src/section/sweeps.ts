// Sweeps and load studies. The reader selects the axes and the measure.

import { fan } from '../chart/fan';
import { heatMap } from '../chart/heat';
import { loadSpecs } from '../chart/load';
import { Panel } from '../chart/panel';
import { overOne } from '../chart/sweep';
import type { Load, Sweep } from '../document';
import { folded, h } from '../dom';
import {
  combinations,
  has,
  MEASURES,
  named,
  pointsOf,
  titled,
  varying,
  type Measure,
  type Point,
} from '../grid';

/** The selection; axes are indexes. */
interface View {
  over: number;
  /** The axis with a chart per value; -1 for none. */
  each: number;
  /** Key of a measure, `RATE` or `FAN`. */
  show: string;
}

/** IOPS of small blocks, bandwidth of large ones. */
const RATE = 'rate';
/** All percentiles of latency. */
const FAN = 'fan';
const MEASURED: [string, string][] = [
  [RATE, 'IOPS, or bandwidth of large I/Os'],
  ...MEASURES.map((measure): [string, string] => [measure.key, measure.title]),
  [FAN, 'Percentiles of latency'],
];

export function sweepContent(sweep: Sweep, number: number): (Node | null)[] {
  const points = pointsOf(sweep);
  const axes = varying(sweep);
  const depth = sweep.axes.length - 1;
  const others = axes.filter((axis) => axis !== depth);
  // Patterns differ most, then numbers of jobs: they get a chart each.
  const apart = ['rw', 'numjobs'].flatMap(
    (name) => others.find((axis) => sweep.axes[axis]?.name === name) ?? [],
  );
  const view: View = {
    over: axes.includes(depth) ? depth : (axes[0] ?? depth),
    each: others.length > 1 ? (apart[0] ?? others[0] ?? -1) : -1,
    show: RATE,
  };
  const place = h('div', {});
  let panels: Panel[] = [];
  const draw = () => {
    panels.forEach((panel) => panel.remove());
    panels = panelsOf(sweep, points, axes, view, number);
    place.replaceChildren(
      h('div', { class: 'grid wide' }, ...panels.map((panel) => panel.element)),
    );
  };
  const name = (axis: number) => sweep.axes[axis]?.name ?? '';
  const select = (
    label: string,
    choices: [string, string][],
    value: string,
    changed: (value: string) => void,
  ) => {
    const element = h(
      'select',
      {},
      ...choices.map(([key, text]) => h('option', { value: key, selected: key === value }, text)),
    );
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
    listed(sentences),
    listed(sweep.notes),
    h(
      'p',
      { class: 'choices' },
      select('Show', MEASURED, view.show, (key) => (view.show = key)),
      axes.length > 1
        ? select('over', over, String(view.over), (axis) => (view.over = Number(axis)))
        : null,
      axes.length > 1
        ? select(
            'a chart for each',
            [['-1', 'nothing'], ...over],
            String(view.each),
            (axis) => (view.each = Number(axis)),
          )
        : null,
    ),
    place,
    h(
      'p',
      { class: 'note' },
      'Filled points of rates are measured with an interval; ' +
        'hollow ones are predicted or have none; filled points of latencies are measured; ' +
        'cells with a dashed edge and figures in parentheses are predicted; ' +
        '~ is measured without an interval; ' +
        '– is not known, and lines are interrupted there. ' +
        'Bands are 95 % confidence; ' +
        'whiskers show the interval of a single point, or the possible error of a prediction.',
    ),
  ];
}

/** Sentences that are shown at once. The others are folded. */
const SHOWN = 4;

export function listed(sentences: string[]): HTMLElement | null {
  if (sentences.length === 0) return null;
  const list = (some: string[]) =>
    h('ul', { class: 'findings' }, ...some.map((text) => h('li', {}, text)));
  const rest = sentences.slice(SHOWN);
  return h(
    'div',
    {},
    list(sentences.slice(0, SHOWN)),
    rest.length > 0 ? folded(`${rest.length} more`, () => list(rest)) : null,
  );
}

/** Panels with curves, then panels with heat maps. */
function panelsOf(
  sweep: Sweep,
  points: Point[],
  axes: number[],
  view: View,
  number: number,
): Panel[] {
  const { over } = view;
  if (view.show === FAN) return fans(sweep, points, axes, over, number);
  const apart = view.each >= 0 && view.each !== over ? [view.each] : [];
  const others = axes.filter((axis) => axis !== over && !apart.includes(axis));
  const shown = measured(sweep, points, view);
  // For each combination, the curve of small blocks comes before that of large blocks.
  const lines = combinations(points, apart).flatMap((combination) =>
    shown.flatMap(([measure, some]) => {
      const chosen = some.filter((point) => has(point, apart, combination));
      // A single curve has no name at its end, so the title names it.
      const [alone, ...more] = combinations(chosen, others);
      const single = more.length === 0 ? alone : undefined;
      return chosen.length === 0
        ? []
        : [
            {
              title: titleOf(
                `${measure.title} over ${sweep.axes[over]?.name}`,
                sweep,
                single ? [...apart, ...others] : apart,
                [...combination, ...(single ?? [])],
              ),
              draw: () => overOne(sweep, chosen, over, others, measure, some),
            },
          ];
    }),
  );
  const panels = lines.map(
    (line, index) => new Panel({ id: `sweep-${number}-curves-${index}`, ...line }),
  );
  const [down] = others;
  if (down === undefined) return panels;
  // A map has two axes; each combination of the other axes has its own map.
  const rest = axes.filter((axis) => axis !== over && axis !== down);
  const maps = combinations(points, rest).flatMap((combination) =>
    shown.flatMap(([measure, some]) => {
      const chosen = some.filter((point) => has(point, rest, combination));
      return chosen.length === 0
        ? []
        : [
            {
              title: titleOf(
                `${measure.title} over ${sweep.axes[over]?.name} and ${sweep.axes[down]?.name}`,
                sweep,
                rest,
                combination,
              ),
              draw: () => mapOf(sweep, chosen, over, down, measure, some),
            },
          ];
    }),
  );
  return [
    ...panels,
    ...maps.map((map, index) => new Panel({ id: `sweep-${number}-map-${index}`, ...map })),
  ];
}

/** The measures to draw, each with its points. */
function measured(sweep: Sweep, points: Point[], view: View): [Measure, Point[]][] {
  const of = (key: string) => MEASURES.find((measure) => measure.key === key) ?? MEASURES[0]!;
  if (view.show !== RATE) return [[of(view.show), points]];
  const some = (isLarge: boolean) => points.filter((point) => point.isLarge === isLarge);
  // A curve over block sizes is not split into IOPS and bandwidth.
  if (sweep.axes[view.over]?.name === 'bs' || some(true).length === 0)
    return [[of('iops'), points]];
  return some(false).length === 0
    ? [[of('bandwidth'), points]]
    : [
        [of('iops'), some(false)],
        [of('bandwidth'), some(true)],
      ];
}

/** A fan for each combination of the other axes. */
function fans(
  sweep: Sweep,
  points: Point[],
  axes: number[],
  over: number,
  number: number,
): Panel[] {
  const others = axes.filter((axis) => axis !== over);
  return combinations(points, others).map((combination, index) => {
    const chosen = points.filter((point) => has(point, others, combination));
    return new Panel({
      id: `sweep-${number}-fan-${index}`,
      title: titleOf(`Latency over ${sweep.axes[over]?.name}`, sweep, others, combination),
      draw: () => fan(sweep, chosen, over),
    });
  });
}

function titleOf(what: string, sweep: Sweep, axes: number[], values: string[]): string {
  const words = values.map((value, index) => named(sweep.axes[axes[index] ?? 0], value));
  return words.length === 0 ? what : `${words.join(' ')}: ${what}`;
}

/** `all` are the points of all maps, which have one scale of colours. */
function mapOf(
  sweep: Sweep,
  points: Point[],
  over: number,
  down: number,
  measure: Measure,
  all: Point[],
) {
  const [columns, rows] = [sweep.axes[over], sweep.axes[down]];
  // Values without a point in this map are left out.
  const used = (axis: number) =>
    (sweep.axes[axis]?.values ?? []).filter((value) =>
      points.some((point) => point.values[axis] === value),
    );
  const [across, downward] = [used(over), used(down)];
  const cells = points.map((point) => ({
    column: across.indexOf(point.values[over] ?? ''),
    row: downward.indexOf(point.values[down] ?? ''),
    value: measure.of(point.cell)?.mean ?? null,
    error: measure.of(point.cell)?.error ?? null,
    // A value that can be anything is no prediction.
    predicted: point.cell.basis === 'predicted' && measure.of(point.cell) !== null,
    shown: measure.shown(point.cell),
  }));
  const axes = {
    columns: across,
    rows: downward,
    columnTitle: columns ? titled(columns) : '',
    rowTitle: rows ? titled(rows) : '',
  };
  const range = all.flatMap((point) => measure.of(point.cell)?.mean ?? []);
  return heatMap(cells, axes, measure.unit, measure.title, range);
}

export function loadContent(load: Load, number: number): (Node | null)[] {
  return [
    h('p', { class: 'lead' }, load.headline),
    listed([...load.objectives, ...load.notes]),
    h('div', { class: 'grid' }, ...loadSpecs(load, number).map((spec) => new Panel(spec).element)),
  ];
}
