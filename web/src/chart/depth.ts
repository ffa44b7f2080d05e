// Rate and latency over iodepth, for each pattern that was measured at several depths.

import { percentile, type Promised, type Rate, type Sweep, type Unit } from '../document';
import { capital, quantity } from '../format';
import { LARGE_BYTES } from '../grid';
import { groupBy, patternOf, type Row } from '../rows';
import { limitLines, limitsInWords, limitsOf, near } from './limits';
import type { Drawing, Spec } from './panel';
import { highest, withError } from './parts';
import { STYLES, stopsOf, type Line, type Mark } from './plot';
import { counts, linear, logarithmic, type Scale } from './scales';

/** One pattern on one subject. */
export interface DepthLine {
  subject: string;
  pattern: string;
  isLarge: boolean;
  places: string[];
  directions: string[];
  points: DepthPoint[];
}

interface DepthPoint {
  depth: number;
  iops: Rate | null;
  bytes_per_s: Rate | null;
  tail: Rate | null;
}

/** More lines than this share no chart: each pattern has its own. */
const LINES = 6;
/** Rates that differ by more than this factor need a logarithmic scale. */
const FAR = 40;

/** Groups rows of one pattern and subject that differ in depth. */
export function depthLines(rows: Row[]): DepthLine[] {
  const moved = rows.filter((row) => row.figure.direction !== 'sync' && row.depth > 0);
  const groups = groupBy(moved, (row) => {
    const workers = row.figure.workers > 1 ? ` × ${row.figure.workers} workers` : '';
    return JSON.stringify([row.run.subject, `${patternOf(row.figure)}${workers}`]);
  });
  return [...groups]
    .filter(([, group]) => new Set(group.map((row) => row.depth)).size > 1)
    .map(([key, group]) => {
      const [subject, pattern] = JSON.parse(key) as [string, string];
      return {
        subject,
        pattern,
        isLarge: group.every((row) => row.figure.block_bytes[0] >= LARGE_BYTES),
        places: group.map((row) => row.run.place),
        directions: group.map((row) => row.figure.direction),
        points: group
          .sort((a, b) => a.depth - b.depth)
          .map(({ depth, figure }) => ({
            depth,
            iops: figure.iops,
            bytes_per_s: figure.bytes_per_s,
            tail: rateOf(percentile(figure.latency, 0.01)),
          })),
      };
    });
}

/** The searches of probes as lines. */
export function searchLines(searches: Sweep[]): DepthLine[] {
  return searches.flatMap((search) =>
    search.curves.map((curve) => ({
      subject: search.subject,
      pattern: curve.values.join(' '),
      isLarge: curve.block_bytes >= LARGE_BYTES,
      places: [search.target],
      directions: curve.values.flatMap((value) =>
        ['read', 'write'].filter((word) => value.includes(word)),
      ),
      points: curve.cells
        .filter((cell) => cell.basis === 'measured')
        .map((cell) => ({
          depth: cell.iodepth,
          iops: cell.iops,
          bytes_per_s: rateOf(cell.bytes_per_s),
          tail: rateOf(cell.percentiles_ns[1] ?? null),
        })),
    })),
  );
}

const rateOf = (value: number | null): Rate | null =>
  value === null ? null : { mean: value, error: null };

interface Measure {
  id: string;
  title: string;
  unit: Unit;
  of: (point: DepthPoint) => Rate | null;
  among: (lines: DepthLine[]) => DepthLine[];
}

/** Small I/Os are drawn in IOPS, large ones in bytes. */
const MEASURES: Measure[] = [
  {
    id: 'depth-iops',
    title: 'IOPS over depth',
    unit: 'iops',
    of: (point) => point.iops,
    among: (lines) => lines.filter((line) => !line.isLarge),
  },
  {
    id: 'depth-bandwidth',
    title: 'Bandwidth over depth',
    unit: 'bytes_per_s',
    of: (point) => point.bytes_per_s,
    among: (lines) => lines.filter((line) => line.isLarge),
  },
  {
    id: 'depth-latency',
    title: '99th percentile of latency over depth',
    unit: 'ns',
    of: (point) => point.tail,
    among: (lines) => lines,
  },
];

/** Charts of the lines; `all` are the subjects of the report, which have a colour each. */
export function depthSpecs(lines: DepthLine[], promises: Promised[], all: string[]): Spec[] {
  const subjects = new Set(lines.map((line) => line.subject));
  // Of several subjects, one that alone has lines keeps its colour and its name.
  const isOne = all.length < 2 && subjects.size < 2;
  const patterns = groupBy(lines, (line) => line.pattern);
  // A subject has one colour in all charts; its patterns differ in their line styles then.
  const styleOf = (line: DepthLine, drawn: DepthLine[]) => {
    // One colour has too few styles for more lines.
    if (isOne || (subjects.size < 2 && drawn.length > STYLES))
      return { slot: lines.indexOf(line), dash: undefined };
    const slot = Math.max(0, all.indexOf(line.subject));
    const shown = [...new Set(drawn.map((each) => each.pattern))];
    if (shown.length === 1) return { slot, dash: slot };
    // A pattern has one style in all charts if there are enough.
    const among = patterns.size <= STYLES ? [...patterns.keys()] : shown;
    return { slot, dash: among.indexOf(line.pattern) };
  };
  return MEASURES.flatMap((measure): Spec[] => {
    const drawn = measure
      .among(lines)
      .filter((line) => line.points.some((point) => measure.of(point) !== null));
    if (drawn.length === 0) return [];
    if (drawn.length <= LINES || subjects.size < 2) {
      const name = (line: DepthLine) =>
        isOne
          ? line.pattern
          : patterns.size === 1
            ? line.subject
            : `${line.subject}: ${line.pattern}`;
      const series = drawn.map((line) => ({ line, ...styleOf(line, drawn), name: name(line) }));
      return [
        {
          id: measure.id,
          title: measure.title,
          draw: () =>
            draw(series, measure, promises, {
              scale: scaleOf(drawn, measure, 0),
              caption: measure.title,
            }),
        },
      ];
    }
    // Charts of all patterns have one scale, and each subject one colour.
    return [...groupBy(drawn, (line) => line.pattern)]
      .filter(([, some]) => some.length > 1)
      .map(([pattern, some], index) => ({
        id: `${measure.id}-${index}`,
        title: `${capital(pattern)}: ${measure.title}`,
        draw: () =>
          draw(
            some.map((line) => ({
              line,
              slot: Math.max(0, all.indexOf(line.subject)),
              dash: undefined,
              name: line.subject,
            })),
            measure,
            promises,
            {
              scale: scaleOf(drawn, measure, 0),
              caption: `${capital(pattern)}: ${measure.title}`,
            },
          ),
      }));
  });
}

function ratesOf(lines: DepthLine[], measure: Measure): Rate[] {
  return lines.flatMap((line) => line.points.flatMap((point) => measure.of(point) ?? []));
}

function scaleOf(lines: DepthLine[], measure: Measure, least: number): Scale {
  const rates = ratesOf(lines, measure);
  const most = Math.max(highest(rates), least);
  const best = lines.map((line) => highest(ratesOf([line], measure))).filter((rate) => rate > 0);
  const isFar = Math.max(...best) > FAR * Math.min(...best);
  return measure.unit === 'ns' || isFar
    ? logarithmic([...rates.map((rate) => rate.mean), most], measure.unit)
    : linear(measure.unit, most);
}

interface Series {
  line: DepthLine;
  slot: number;
  /** Line style; that of the colour by default. */
  dash: number | undefined;
  name: string;
}

function draw(
  series: Series[],
  measure: Measure,
  promises: Promised[],
  { scale, caption }: { scale: Scale; caption: string },
): Drawing {
  const lines = series.map(({ line }) => line);
  const points = lines.map((line) =>
    line.points.flatMap((point) => {
      const rate = measure.of(point);
      return rate === null ? [] : [{ depth: point.depth, rate }];
    }),
  );
  const depths = [...new Set(points.flat().map((point) => point.depth))].sort((a, b) => a - b);
  const promised = limitsOf(
    promises,
    new Set(lines.flatMap((line) => line.places)),
    measure.unit,
    new Set(lines.flatMap((line) => line.directions)),
  );
  const reached = highest(points.flat().map((point) => point.rate));
  const limits = near(promised, reached);
  const top = Math.max(0, ...limits.map((limit) => limit.value));
  const best = series.map(({ name }, index) => {
    const most = Math.max(0, ...(points[index] ?? []).map((point) => point.rate.mean));
    return `${name}: up to ${quantity(most, measure.unit)}.`;
  });
  const curves = series.map(({ name, slot, dash }, index): Line => ({
    kind: 'line',
    name,
    slot,
    dash,
    points: (points[index] ?? []).map(({ depth, rate }) => ({ x: depth, y: rate.mean })),
    step: false,
    filled: false,
    dots: true,
  }));
  const intervals = series.map(({ name, slot }, index): Mark => ({
    kind: 'whiskers',
    name,
    slot,
    points: (points[index] ?? []).flatMap(({ depth, rate }) =>
      rate.error === null ? [] : [[depth, rate.mean - rate.error, rate.mean + rate.error]],
    ),
  }));
  return {
    summary: best.join(' ') + limitsInWords(promised),
    plot: {
      x: { title: 'I/Os in flight', scale: counts(depths), lines: false },
      strips: [
        {
          title: '',
          height: 200,
          y: {
            title: '',
            scale: top > scale.max ? scaleOf(lines, measure, top) : scale,
            lines: true,
          },
          marks: [...limitLines(limits), ...intervals, ...curves],
        },
      ],
      labels: true,
    },
    stops: stopsOf(
      curves,
      (depth) => `depth ${depth}`,
      (value) => quantity(value, measure.unit),
    ),
    table: () => ({
      caption,
      head: ['I/Os in flight', ...series.map(({ name }) => name)],
      rows: depths.map((depth) => [
        depth,
        ...points.map((line) =>
          line
            .filter((point) => point.depth === depth)
            .map((point) => withError(point.rate, measure.unit))
            .join('; '),
        ),
      ]),
    }),
  };
}
