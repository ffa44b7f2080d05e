// Time series of a run: its I/O above the activity of its devices, on one time axis.

import type { Promised, Run, Series, Track } from '../document';
import { capital, quantity, seconds } from '../format';
import { groupBy } from '../rows';
import { limitLines, limitsInWords, limitsOf, near, type Limit } from './limits';
import type { Drawing } from './panel';
import { stopsOf, type Line, type Mark, type Strip } from './plot';
import { linear, logarithmic, logBounds, times, type Scale } from './scales';

interface Quantity {
  title: string;
  tracks: { track: Track; name: string; at_s: number[]; end_s: number; color: number }[];
  /** Promised limits of the strip. */
  limits: Limit[];
}

/** Height of a strip in pixels. */
const STRIP = 96;
/** Height of a strip if devices have strips too. */
const LOW_STRIP = 56;
/** A last slice shorter than this share of the one before is not drawn. */
const CUT_SHARE = 0.5;
/** Series without devices, whose group names suffice as titles. */
const OF_ITS_OWN = ['run', 'machine'];
const COLORS: { [name: string]: number } = {
  read: 0,
  write: 1,
  trim: 2,
  discard: 2,
  p50: 4,
  p99: 3,
  max: 5,
};

/** Tracks of one group of one series share a strip. */
function quantities(series: Series[], run: Run, promises: Promised[]): Quantity[] {
  const several = run.series.length > 1;
  return series.flatMap((series) => {
    const groups = groupBy(series.tracks, (track) => track.group);
    return [...groups].map(([group, tracks]) => ({
      title: !several || OF_ITS_OWN.includes(series.of) ? capital(group) : `${series.of}: ${group}`,
      tracks: tracks.map((track, index) => ({
        track,
        name: `${series.of === 'run' ? '' : `${series.of} `}${group} ${track.name}`.trim(),
        at_s: series.at_s,
        end_s: series.end_s,
        color: COLORS[track.name] ?? index,
      })),
      limits:
        series.of === 'run' && tracks[0]
          ? limitsOf(
              promises,
              new Set([run.place]),
              tracks[0].unit,
              new Set(tracks.map((track) => track.name)),
            )
          : [],
    }));
  });
}

/** Contents of a chart over time: the I/O of the run, or the activity of devices and machine. */
export type Part = 'run' | 'machine';

/** Series of a run that belong to a part. */
export function seriesOfPart(run: Run, part: Part): Series[] {
  return run.series.filter((series) => (series.of === 'run') === (part === 'run'));
}

export function timeline(run: Run, promises: Promised[], part: Part): Drawing {
  const shown = seriesOfPart(run, part);
  const all = quantities(shown, run, promises);
  const height = all.length > 3 ? LOW_STRIP : STRIP;
  const first = run.series[0];
  const end = Math.max(0, ...run.series.map((series) => series.end_s));
  const rampEnd = first && first.ramp > 0 ? (first.at_s[first.ramp] ?? end) : 0;
  const start = Math.floor(first?.at_s[0] ?? 0);
  const lines = all.map((each) => each.tracks.map(lineOf));
  const around: Mark[] = [
    ...(rampEnd > 0 ? [{ kind: 'span', from: start, to: rampEnd } as const] : []),
    ...run.events
      .filter((event) => event.at_ns > 0 && event.at_ns / 1e9 <= end)
      .map((event) => ({ kind: 'moment', at: event.at_ns / 1e9, text: event.message }) as const),
  ];
  const strips = all.map((each, index): Strip => {
    const limits = near(each.limits, most(each));
    return {
      title: each.title,
      height,
      y: { title: '', scale: scaleOf(each, limits), lines: true },
      marks: [...around, ...limitLines(limits), ...(lines[index] ?? [])],
    };
  });
  const units = new Map(
    all.flatMap((each) => each.tracks.map(({ name, track }) => [name, track.unit] as const)),
  );
  return {
    summary: `${capital(run.name)}, ${all
      .map((each) => each.title)
      .join(', ')} over ${seconds(end - start)}.${
      rampEnd > 0 ? ' The first part is a ramp, which no figure counts.' : ''
    }${limitsInWords(all.flatMap((each) => each.limits))}`,
    // A name in the shaded part would be crossed by curves, and a long title of the axis cut off.
    note: rampEnd > 0 ? 'Shaded: the ramp, which no figure counts.' : '',
    plot: {
      x: { title: 'seconds since the start of the run', scale: times(start, end), lines: false },
      strips,
      labels: true,
    },
    stops: stopsOf(
      lines.flat(),
      (at) => `from ${at.toFixed(2)} s`,
      (value, { name }) => quantity(value, units.get(name) ?? 'count'),
    ).slice(0, -1),
    table: () => tableOf(run, shown),
  };
}

/** Values at the starts of their slices; the last one is repeated at the end of its slice. */
function lineOf({ name, color, at_s, end_s, track }: Quantity['tracks'][number]): Line {
  const points = at_s
    .slice(0, wholeSlices(at_s, end_s))
    .map((x, index) => ({ x, y: track.values[index] ?? null }));
  const last = points.at(-1)?.y ?? null;
  return {
    kind: 'line',
    name,
    label: track.name,
    slot: color,
    points: [...points, { x: end_s, y: last }],
    step: true,
    filled: false,
    dots: false,
  };
}

/** Number of slices to draw: one that the end of the run cut to almost nothing has no rate. */
function wholeSlices(at_s: number[], end_s: number): number {
  const [before, begin] = [at_s.at(-2), at_s.at(-1) ?? 0];
  const isCut = before !== undefined && end_s - begin < CUT_SHARE * (begin - before);
  return isCut ? at_s.length - 1 : at_s.length;
}

function valuesOf(each: Quantity): number[] {
  return each.tracks.flatMap(({ track, at_s, end_s }) =>
    track.values.slice(0, wholeSlices(at_s, end_s)).filter((value) => value !== null),
  );
}

const most = (each: Quantity) => Math.max(0, ...valuesOf(each));

/** Latency is logarithmic, as latencies span powers of ten; rates start at zero. */
function scaleOf(each: Quantity, limits: Limit[]): Scale {
  const unit = each.tracks[0]?.track.unit ?? 'count';
  const values = valuesOf(each);
  const { min, max } = logBounds(values);
  return unit === 'ns' && max > 20 * min
    ? logarithmic(values, unit)
    : linear(unit, Math.max(most(each), ...limits.map((limit) => limit.value)));
}

function tableOf(run: Run, shown: Series[]) {
  const units = { iops: '1/s', bytes_per_s: 'B/s', ns: 'ns', percent: '%', count: '' };
  const of = shown.map((series) => ({
    series,
    at: new Map(series.at_s.map((at, index) => [at, index])),
  }));
  const times = [...new Set(shown.flatMap((series) => series.at_s))].sort((a, b) => a - b);
  const columns = of.flatMap(({ series, at }) =>
    series.tracks.map((track) => ({ series, at, track })),
  );
  return {
    caption: `${run.name}, over time`,
    head: [
      'from (s)',
      ...columns.map(
        ({ series, track }) =>
          `${series.of === 'run' ? '' : `${series.of} `}${track.group} ${track.name} (${
            units[track.unit]
          })`,
      ),
    ],
    rows: times.map((time) => [
      time,
      ...columns.map(({ at, track }) => {
        const index = at.get(time);
        return (index === undefined ? null : track.values[index]) ?? '';
      }),
    ]),
  };
}
