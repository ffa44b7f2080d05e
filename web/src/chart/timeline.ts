// Time series of a run: its I/O above the activity of its devices, on one time axis.

import type { Promised, Run, Track } from '../document';
import { capital, quantity, seconds } from '../format';
import { groupBy } from '../rows';
import type { Theme } from '../theme';
import { limitLines, limitsInWords, limitsOf, near, type Limit } from './limits';
import type { Drawing } from './panel';
import {
  dashOf,
  linear,
  logarithmic,
  logBounds,
  told,
  tooltip,
  upTo,
  valueAxis,
  xAxis,
  type Hit,
  type Option,
} from './parts';

interface Strip {
  title: string;
  tracks: { track: Track; name: string; at_s: number[]; end_s: number; color: number }[];
  /** Promised limits of the strip. */
  limits: Limit[];
}

const STRIP = 130;
/** Height of a strip if devices have strips too. */
const LOW_STRIP = 84;
const GAP = 52;
/** Series without devices, whose group names suffice as titles. */
const OF_ITS_OWN = ['run', 'machine', 'waiting'];
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
function strips(run: Run, promises: Promised[]): Strip[] {
  const several = run.series.length > 1;
  return run.series.flatMap((series) => {
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

export function timeline(run: Run, promises: Promised[]): Drawing {
  const all = strips(run, promises);
  const height = all.length > 3 ? LOW_STRIP : STRIP;
  const drawn = all.flatMap((strip, index) =>
    strip.tracks.map((each) => ({ ...each, strip: index })),
  );
  const first = run.series[0];
  const end = Math.max(0, ...run.series.map((series) => series.end_s));
  const rampEnd = first && first.ramp > 0 ? (first.at_s[first.ramp] ?? end) : 0;
  const start = Math.floor(first?.at_s[0] ?? 0);
  return {
    summary: `${capital(run.name)}, ${all
      .map((strip) => strip.title)
      .join(', ')} over ${seconds(end - start)}.${
      rampEnd > 0 ? ' The first part is a ramp, which no figure counts.' : ''
    }${limitsInWords(all.flatMap((strip) => strip.limits))}`,
    legend: drawn.map((each) => ({ name: each.name, color: each.color, dash: dashOf(0) })),
    height: 30 + all.length * (height + GAP),
    option: (theme, hidden) => ({
      grid: all.map((_, index) => ({
        left: 76,
        right: 24,
        top: 28 + index * (height + GAP),
        height,
      })),
      axisPointer: { link: [{ xAxisIndex: 'all' }] },
      tooltip: tooltip(theme, (hits) => tip(hits, drawn)),
      xAxis: all.map((_, index) =>
        xAxis(theme, index + 1 === all.length ? 'seconds since the start of the run' : '', {
          gridIndex: index,
          min: start,
          max: end,
          axisLabel: { color: theme.muted, hideOverlap: true, showMaxLabel: Number.isInteger(end) },
        }),
      ),
      yAxis: all.map((strip, index) => axisOf(theme, strip, index)),
      series: [
        ...drawn.map((each, index) => ({
          type: 'line',
          step: 'end',
          name: each.name,
          xAxisIndex: each.strip,
          yAxisIndex: each.strip,
          data: hidden.has(each.name) ? [] : points(each),
          showSymbol: false,
          lineStyle: { width: 1.8 },
          color: theme.colors[each.color % theme.colors.length],
          markArea:
            rampEnd > 0 && drawn.findIndex((other) => other.strip === each.strip) === index
              ? ramp(theme, start, rampEnd)
              : undefined,
        })),
        ...all.flatMap((strip, index) =>
          limitLines(theme, near(strip.limits, highest(strip)), {
            xAxisIndex: index,
            yAxisIndex: index,
          }),
        ),
      ],
    }),
    table: () => tableOf(run),
  };
}

/** Values at the starts of their slices; the last one is repeated at the end of its slice. */
function points(each: Strip['tracks'][number]): (number | null)[][] {
  const values = each.at_s.map((at, index) => [at, each.track.values[index] ?? null]);
  const last = each.at_s.length - 1;
  return [...values, [each.end_s, each.track.values[last] ?? null]];
}

function highest(strip: Strip): number {
  return Math.max(
    0,
    ...strip.tracks.flatMap(({ track }) => track.values.filter((value) => value !== null)),
  );
}

function axisOf(theme: Theme, strip: Strip, index: number): Option {
  const unit = strip.tracks[0]?.track.unit ?? 'count';
  const values = strip.tracks.flatMap(({ track }) =>
    track.values.filter((value) => value !== null),
  );
  const bounds = logBounds(values);
  // Latency axes are logarithmic, as latencies span powers of ten; rate axes start at zero.
  const limits = near(strip.limits, highest(strip));
  const most = Math.max(highest(strip), ...limits.map((limit) => limit.value));
  const scale =
    unit === 'ns' && bounds.max > 20 * bounds.min
      ? logarithmic(values)
      : limits.length > 0
        ? upTo(unit, most)
        : linear(unit, most);
  return valueAxis(theme, strip.title, unit, { gridIndex: index, splitNumber: 3, ...scale });
}

function ramp(theme: Theme, from: number, to: number): Option {
  return {
    silent: true,
    itemStyle: { color: theme.faint, opacity: 0.7 },
    label: { show: true, color: theme.muted, position: 'insideBottom', fontSize: 11 },
    data: [[{ name: 'ramp', xAxis: from }, { xAxis: to }]],
  };
}

function tip(hits: Hit[], drawn: { name: string; track: Track }[]): string {
  const at = hits[0]?.value[0] ?? 0;
  const lines = hits.flatMap((hit) => {
    const each = drawn[hit.seriesIndex];
    const value = hit.value[1];
    return each && value !== undefined && value !== null
      ? [{ color: hit.color, name: each.name, value: quantity(value, each.track.unit) }]
      : [];
  });
  return told(`from ${at.toFixed(2)} s`, lines);
}

function tableOf(run: Run) {
  const units = { iops: '1/s', bytes_per_s: 'B/s', ns: 'ns', percent: '%', count: '' };
  const of = run.series.map((series) => ({
    series,
    at: new Map(series.at_s.map((at, index) => [at, index])),
  }));
  const times = [...new Set(run.series.flatMap((series) => series.at_s))].sort((a, b) => a - b);
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
