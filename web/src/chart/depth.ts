// Rate and latency over iodepth, for each pattern that was measured at several depths.

import { percentile, type Promised, type Sweep, type SweepCell, type Unit } from '../document';
import { capital, quantity } from '../format';
import { LARGE_BYTES } from '../grid';
import { groupBy, patternOf, type Row } from '../rows';
import { limitLines, limitsInWords, limitsOf, near } from './limits';
import type { Drawing, Spec } from './panel';
import { distinctDashes, STYLES, stopsOf, type Line, type Mark } from './plot';
import { counts, linear, logarithmic, type Scale } from './scales';
import type { Styles } from './styles';

/** One pattern on one subject. */
export interface DepthLine {
  subject: string;
  pattern: string;
  isLarge: boolean;
  places: string[];
  directions: string[];
  points: DepthPoint[];
  /** Whether the points are short runs of a search, and notes on this curve. */
  isSearch: boolean;
  notes: string[];
}

interface DepthPoint {
  depth: number;
  iops: DepthValue | null;
  bytes_per_s: DepthValue | null;
  tail: DepthValue | null;
}

interface DepthValue {
  value: number;
  /** The 95 % confidence interval, if it is known and does not reach zero. */
  between: [number, number] | null;
  /** The value with its interval, as all screens print it. */
  text: string;
  /** Why there is no interval. */
  doubt: string | undefined;
}

const NOT_KNOWN = 'interval not known';

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
            iops: valueOf(figure.iops.mean, figure.iops.error, {
              text: figure.shown.iops,
              half: figure.shown.iops_half,
              doubt: figure.shown.doubt,
            }),
            bytes_per_s: valueOf(figure.bytes_per_s.mean, figure.bytes_per_s.error, {
              text: figure.shown.bandwidth,
              half: figure.shown.bandwidth_half,
              doubt: figure.shown.doubt,
            }),
            tail: tailOf(
              percentile(figure.latency, 0.01),
              figure.percentile_bounds[1] ?? null,
              figure.shown.percentiles[1],
            ),
          })),
        isSearch: false,
        notes: [],
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
        .map(pointOf),
      isSearch: true,
      notes: curve.notes.map((note) =>
        searches.length > 1 ? `${search.subject}: ${note}.` : `${capital(note)}.`,
      ),
    })),
  );
}

/** A measured cell. The interval of its bandwidth is the same share as that of its rate. */
function pointOf({
  iodepth,
  iops,
  bytes_per_s,
  percentiles_ns,
  p99_between_ns,
  shown,
}: SweepCell): DepthPoint {
  const error = iops === null ? null : iops.error;
  const scale = iops !== null && iops.mean > 0 ? (bytes_per_s ?? 0) / iops.mean : 0;
  return {
    depth: iodepth,
    iops:
      iops === null
        ? null
        : valueOf(iops.mean, error, {
            text: shown?.iops ?? quantity(iops.mean, 'iops'),
            half: shown?.iops_half ?? null,
            doubt: shown?.doubt,
          }),
    bytes_per_s:
      bytes_per_s === null
        ? null
        : valueOf(bytes_per_s, error === null ? null : error * scale, {
            text: shown?.bandwidth ?? quantity(bytes_per_s, 'bytes_per_s'),
            half: shown?.bandwidth_half ?? null,
            doubt: shown?.doubt,
          }),
    tail: tailOf(percentiles_ns[1] ?? null, p99_between_ns ?? null, shown?.p99 ?? null),
  };
}

function valueOf(
  value: number,
  error: number | null,
  { text, half, doubt }: { text: string; half: string | null; doubt: string | undefined },
): DepthValue {
  const isKnown = error !== null && error < value;
  return {
    value,
    between: isKnown ? [value - error, value + error] : null,
    text: half === null ? text : `${text} ${half}`,
    doubt: isKnown ? undefined : (doubt ?? NOT_KNOWN),
  };
}

function tailOf(
  ns: number | null,
  between: [number, number] | null,
  text: string | null,
): DepthValue | null {
  if (ns === null) return null;
  const doubt = between === null ? NOT_KNOWN : undefined;
  return { value: ns, between, text: text ?? quantity(ns, 'ns'), doubt };
}

/** Lowest end of an interval. An axis that cut it off would look like one that ends there. */
const lowest = ({ value, between }: DepthValue) => between?.[0] ?? value;

/** Highest end of the intervals. */
const highest = (values: DepthValue[]) =>
  Math.max(0, ...values.map(({ value, between }) => between?.[1] ?? value));

/** A value of the table behind the chart. */
function inTable({ text, between, doubt }: DepthValue, unit: Unit): string {
  if (between === null) return `${text}, ${doubt}`;
  const [low, high] = between;
  // The intervals of percentiles are not symmetric.
  return unit === 'ns' ? `${text}, ${quantity(low, unit)} to ${quantity(high, unit)}` : text;
}

interface Measure {
  id: string;
  title: string;
  unit: Unit;
  of: (point: DepthPoint) => DepthValue | null;
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

/**
 * Charts of the lines; `all` are the subjects of the report, which have a colour each. The lines of
 * a single subject have the styles of their patterns.
 */
export function depthSpecs(
  lines: DepthLine[],
  promises: Promised[],
  all: string[],
  patternStyles: Styles,
): Spec[] {
  const subjects = new Set(lines.map((line) => line.subject));
  // Of several subjects, one that alone has lines keeps its colour and its name.
  const isOne = all.length < 2 && subjects.size < 2;
  const patterns = groupBy(lines, (line) => line.pattern);
  // A subject has one colour in all charts; its patterns differ in their line styles then.
  const styleOf = (line: DepthLine, drawn: DepthLine[]) => {
    const style = isOne ? patternStyles.get(line.pattern) : undefined;
    if (style) return style;
    // One colour has too few styles for more lines.
    if (subjects.size < 2 && drawn.length > STYLES)
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
      const styles = drawn.map((line) => styleOf(line, drawn));
      const dashes = distinctDashes(styles);
      const series = drawn.map((line, index) => ({
        line,
        slot: styles[index]?.slot ?? 0,
        dash: dashes[index],
        name: name(line),
      }));
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

/** Explains the points of a chart, and its hollow points. */
function noteOn(lines: DepthLine[], measure: Measure): string {
  const notes: string[] = [];
  const searched = lines.filter((line) => line.isSearch);
  if (searched.length > 0) {
    const subjects = [...new Set(searched.map((line) => line.subject))].join(', ');
    notes.push(
      searched.length === lines.length
        ? 'Points are short runs of the search, not the runs of the summary.'
        : `Points of ${subjects} are short runs of a search, not the runs of the summary.`,
    );
  }
  const values = valuesOf(lines, measure);
  const doubted = values.filter((value) => value.between === null).length;
  if (doubted > 0)
    notes.push(
      doubted < values.length
        ? 'Hollow points: 95 % interval not known, or ±100 % or more.'
        : 'No point has a 95 % interval: not known, or ±100 % or more.',
    );
  if (measure.unit !== 'ns') notes.push(...new Set(lines.flatMap((line) => line.notes)));
  return notes.join(' ');
}

function valuesOf(lines: DepthLine[], measure: Measure): DepthValue[] {
  return lines.flatMap((line) => line.points.flatMap((point) => measure.of(point) ?? []));
}

function scaleOf(lines: DepthLine[], measure: Measure, least: number): Scale {
  const values = valuesOf(lines, measure);
  const most = Math.max(highest(values), least);
  const best = lines.map((line) => highest(valuesOf([line], measure))).filter((rate) => rate > 0);
  const isFar = Math.max(...best) > FAR * Math.min(...best);
  return measure.unit === 'ns' || isFar
    ? logarithmic([...values.map(lowest), most], measure.unit)
    : linear(measure.unit, most);
}

interface Series {
  line: DepthLine;
  slot: number;
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
      const found = measure.of(point);
      return found === null ? [] : [{ depth: point.depth, ...found }];
    }),
  );
  // Hollow points would distinguish nothing if all points were hollow.
  const hasHollow = points.flat().some((point) => point.between !== null);
  const depths = [...new Set(points.flat().map((point) => point.depth))].sort((a, b) => a - b);
  const promised = limitsOf(
    promises,
    new Set(lines.flatMap((line) => line.places)),
    measure.unit,
    new Set(lines.flatMap((line) => line.directions)),
  );
  const reached = highest(points.flat());
  const limits = near(promised, reached);
  const top = Math.max(0, ...limits.map((limit) => limit.value));
  const best = series.map(({ name }, index) => {
    const some = points[index] ?? [];
    const most = Math.max(...some.map((point) => point.value));
    return `${name}: up to ${some.find((point) => point.value === most)?.text ?? '0'}.`;
  });
  const curves = series.map(({ name, slot, dash }, index): Line => ({
    kind: 'line',
    name,
    slot,
    dash,
    points: (points[index] ?? []).map(({ depth, value, between }) => ({
      x: depth,
      y: value,
      hollow: hasHollow && between === null,
    })),
    step: false,
    filled: false,
    dots: true,
  }));
  const shown = top > scale.max ? scaleOf(lines, measure, top) : scale;
  const intervals = series.map(({ name, slot }, index): Mark => ({
    kind: 'whiskers',
    name,
    slot,
    points: (points[index] ?? []).flatMap(({ depth, between }) =>
      between === null ? [] : [[depth, between[0], between[1]]],
    ),
  }));
  return {
    summary: best.join(' ') + limitsInWords(promised),
    note: noteOn(lines, measure),
    plot: {
      x: { title: 'I/Os in flight', scale: counts(depths), lines: false },
      strips: [
        {
          title: '',
          height: 200,
          y: {
            title: '',
            scale: shown,
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
      (_, line, index) => {
        const point = points[curves.indexOf(line)]?.[index];
        return point?.doubt === undefined ? (point?.text ?? '') : `${point.text}, ${point.doubt}`;
      },
    ),
    table: () => ({
      caption,
      head: ['I/Os in flight', ...series.map(({ name }) => name)],
      rows: depths.map((depth) => [
        depth,
        ...points.map((line) =>
          line
            .filter((point) => point.depth === depth)
            .map((point) => inTable(point, measure.unit))
            .join('; '),
        ),
      ]),
    }),
  };
}
