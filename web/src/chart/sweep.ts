// Curves of a sweep over an axis with confidence bands. Predicted points are hollow.

import type { Rate, Sweep } from '../document';
import { combinations, has, isOrdered, named, titled, type Measure, type Point } from '../grid';
import { groupedBars } from './bars';
import type { Drawing } from './panel';
import { bounds, highest, inGrid } from './parts';
import { distinctDashes, stopsOf, type Line, type Mark } from './plot';
import { linear, logarithmic, overValues, placesOf } from './scales';

interface Curve {
  name: string;
  slot: number;
  dash: number | undefined;
  points: CurvePoint[];
}

interface CurvePoint {
  at: number;
  mean: number;
  error: number | null;
  measured: boolean;
  /** Text with the known digits, as the program writes it. */
  shown: string | null;
}

/**
 * A chart over `axis`: a line per combination of `others`, or bars if the axis is not ordered.
 * `all` are the points of all charts side by side, which have one scale.
 */
export function overOne(
  sweep: Sweep,
  points: Point[],
  axis: number,
  others: number[],
  measure: Measure,
  all: Point[],
): Drawing {
  const rates = all.flatMap((point) => measure.of(point.cell) ?? []);
  return isOrdered(sweep.axes[axis])
    ? curves(sweep, points, axis, others, measure, rates)
    : bars(sweep, points, axis, others, measure, rates);
}

function lineName(sweep: Sweep, others: number[], combination: string[], measure: Measure): string {
  if (combination.length === 0) return measure.title;
  return combination.map((value, index) => named(sweep.axes[others[index] ?? 0], value)).join(' ');
}

/** Axis of the targets of a suite, which have one colour each. */
const TARGET = 'target';

/** Colours and line styles of the combinations of the axes `others`. */
function stylesOf(sweep: Sweep, others: number[], all: string[][]) {
  const at = others.findIndex((axis) => sweep.axes[axis]?.name === TARGET);
  const targets = sweep.axes[others[at] ?? -1]?.values ?? [];
  const rest = (combination: string[]) =>
    JSON.stringify(combination.filter((_, index) => index !== at));
  const rests = [...new Set(all.map(rest))];
  const styles = all.map((combination, index) => {
    if (at < 0) return { slot: index, dash: index };
    const slot = targets.indexOf(combination[at] ?? '');
    return { slot, dash: rests.length > 1 ? rests.indexOf(rest(combination)) : slot };
  });
  const dashes = distinctDashes(styles);
  return styles.map(({ slot }, index) => ({ slot, dash: dashes[index] }));
}

function bars(
  sweep: Sweep,
  points: Point[],
  axis: number,
  others: number[],
  measure: Measure,
  rates: Rate[],
): Drawing {
  const over = sweep.axes[axis];
  const categories = (over?.values ?? []).filter((value) =>
    points.some((point) => point.values[axis] === value),
  );
  const series = combinations(points, others).map((combination) => ({
    name: lineName(sweep, others, combination, measure),
    bars: categories.map((value) => {
      const point = points.find(
        (each) => each.values[axis] === value && has(each, others, combination),
      );
      const rate = point && measure.of(point.cell);
      if (!point || !rate) return null;
      const predicted = point.cell.basis !== 'measured';
      const text = inGrid(rate, measure.unit, { shown: measure.shown(point.cell), predicted });
      return { value: rate.mean, between: bounds(rate), predicted, text };
    }),
  }));
  return groupedBars({
    title: `${measure.title} over ${over?.name}`,
    unit: measure.unit,
    label: over ? titled(over) : '',
    categories,
    series,
    scale: 'linear',
    most: highest(rates),
  });
}

/** Curves over `axis`, one per combination of `others`. */
function curves(
  sweep: Sweep,
  points: Point[],
  axis: number,
  others: number[],
  measure: Measure,
  rates: Rate[],
): Drawing {
  const over = sweep.axes[axis];
  const values = over?.values ?? [];
  const { at, numbers } = placesOf(values);
  const all = combinations(points, others);
  const styles = stylesOf(sweep, others, all);
  const lines: Curve[] = all.map((combination, index) => ({
    name: lineName(sweep, others, combination, measure),
    slot: styles[index]?.slot ?? index,
    dash: styles[index]?.dash,
    points: points
      .filter((point) => has(point, others, combination))
      .flatMap((point) => {
        const rate = measure.of(point.cell);
        return rate === null
          ? []
          : [
              {
                at: at(point.values[axis] ?? ''),
                ...rate,
                measured: point.cell.basis === 'measured',
                shown: measure.shown(point.cell),
              },
            ];
      })
      .sort((a, b) => a.at - b.at),
  }));
  const head = (index: number) => (numbers ? `${over?.name} ${index}` : (values[index] ?? ''));
  const places = values.map(at).sort((a, b) => a - b);
  const marks = lines.map((line) => markOf(line, places, measure));
  return {
    summary: lines.map((line) => `${line.name}: ${extentOf(line, measure)}.`).join(' '),
    plot: {
      x: { title: over ? titled(over) : '', scale: overValues(values), lines: false },
      strips: [
        {
          title: '',
          height: 220,
          y: {
            title: '',
            scale:
              measure.unit === 'ns' && rates.length > 0
                ? logarithmic(
                    // An interval that the axis cut off would look like one that ends there.
                    rates.flatMap((rate) => [bounds(rate)?.[0] ?? rate.mean, rate.mean]),
                    'ns',
                  )
                : linear(measure.unit, highest(rates)),
            lines: true,
          },
          marks: [...lines.flatMap((line) => intervals(line, places)), ...marks],
        },
      ],
      labels: true,
    },
    stops: stopsOf(marks, head, (_, mark, index) => {
      const place = mark.points[index]?.x;
      const point = lines[marks.indexOf(mark)]?.points.find((each) => each.at === place);
      return point ? said(point, measure) : '';
    }),
    table: () => ({
      caption: `${measure.title} over ${over?.name}`,
      head: [over?.name ?? '', ...lines.map((line) => line.name)],
      rows: values.map((value) => [
        value,
        ...lines.map((line) => {
          const point = line.points.find((each) => each.at === at(value));
          return point ? said(point, measure) : '';
        }),
      ]),
    }),
  };
}

function said(point: CurvePoint, measure: Measure): string {
  const { shown, measured } = point;
  return inGrid(point, measure.unit, { shown, predicted: !measured });
}

/** The lowest and the highest point of a curve, with their known digits. */
function extentOf({ points }: Curve, measure: Measure): string {
  const rising = [...points].sort((a, b) => a.mean - b.mean);
  const [lowest, most] = [rising[0], rising.at(-1)];
  return lowest && most ? `from ${said(lowest, measure)} to ${said(most, measure)}` : 'nothing';
}

/** The line of a curve. It is interrupted at the places of the axis where nothing is known. */
function markOf({ name, slot, dash, points }: Curve, places: number[], measure: Measure): Line {
  // Latencies of sweeps have no intervals in these charts.
  const isHollow = ({ measured, error }: CurvePoint) =>
    !measured || (measure.unit !== 'ns' && error === null);
  return {
    kind: 'line',
    name,
    slot,
    dash,
    points: places.map((x) => {
      const point = points.find((each) => each.at === x);
      return point ? { x, y: point.mean, hollow: isHollow(point) } : { x, y: null };
    }),
    step: false,
    filled: false,
    dots: true,
  };
}

/**
 * The confidence band of a curve, and whiskers for the possible errors of its predictions. The band
 * is interrupted at the places of the axis where no interval is known. An interval between two such
 * places is a whisker.
 */
function intervals({ name, slot, points }: Curve, places: number[]): Mark[] {
  type Interval = [x: number, low: number, high: number];
  const runs: Interval[][] = [[]];
  const guessed: Interval[] = [];
  for (const x of places) {
    const point = points.find((each) => each.at === x);
    const range = point ? bounds(point) : null;
    if (!point || !range) {
      runs.push([]);
      continue;
    }
    runs.at(-1)?.push([x, ...range]);
    if (!point.measured) guessed.push([x, ...range]);
  }
  const alone = runs.flatMap((run) => (run.length === 1 ? run : []));
  const whiskers = new Map([...guessed, ...alone].map((interval) => [interval[0], interval]));
  const bands = runs.filter((run) => run.length > 1);
  return [
    ...bands.map((run): Mark => ({ kind: 'band', name, slot, opacity: 0.18, points: run })),
    { kind: 'whiskers', name, slot, points: [...whiskers.values()] },
  ];
}
