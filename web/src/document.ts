// Types of the document that the page draws; equal to crates/report/src/html/document.rs.

export interface Report {
  program: string;
  title: string;
  hosts: Fact[];
  targets: Fact[][];
  plans: Plan[];
  studies: Study[];
  /** Each further study compared with the first. */
  winners: Winner[];
  runs: Run[];
  suites: SuiteVerdict[];
  /** Expectations of suites, those that are not met first. */
  expectations: Expectation[];
  promises: Promised[];
  spreads: Spread[];
  sweeps: Sweep[];
  /** Knee searches of `probe`. */
  knees: Sweep[];
  loads: Load[];
  pivots: Pivot[];
  /** Stored results that the pivots use. */
  kept: Kept[];
}

/** Comparison of two probes. `[first]` and `[second]` stand for the names of the targets. */
export interface Winner {
  /** Indexes of the studies. */
  first: number;
  second: number;
  /** The winner, by how much, and how certain that is. */
  sentence: string;
  /** The faster target by each main figure, or that no difference is shown. */
  figures: string[];
  /** Facts that the comparison depends on, such as patterns that differ. */
  notes: string[];
}

/** A suite on one target. */
export interface SuiteVerdict {
  name: string;
  /** Labels of the target, or its name. */
  target: string;
  /** Verdict on all expectations: `failed: 3 met, 1 missed`. */
  verdict: string;
  /** Whether all expectations are met; `null` without an expectation or without a decision. */
  passed: boolean | null;
  /** Limits of the verdict, one sentence each. */
  cautions: string[];
}

/** Verdict on an expectation of a suite. */
export interface Expectation {
  suite: string;
  /** Labels of the target, or its name. */
  target: string;
  expectation: string;
  figure: string;
  /** `met`, `missed`, `undecided` or `not measured`. */
  verdict: string;
  /** Tick, cross or question mark. */
  mark: string;
  evidence: string;
}

/** One figure of many results by two of their labels. */
export interface Pivot {
  /** The requested figure: `randread.max_iops`. */
  figure: string;
  title: string;
  unit: Unit;
  row_label: string;
  column_label: string;
  rows: string[];
  columns: string[];
  /** Indexed by row, then column. */
  cells: (PivotCell | null)[][];
  simulated: boolean;
}

export interface PivotCell {
  /** The value; `note` names the statistic if there are several results. */
  value: number;
  /** The 95 % confidence interval. */
  between: [number, number] | null;
  results: number;
  /** The statistic over several results, and their range. */
  note: string | null;
  promised: number | null;
  /** The product that promises the value, and where the vendor published the promise. */
  product: string | null;
  kept: boolean | null;
}

/** A stored result. */
export interface Kept {
  id: string;
  kind: string;
  target: string;
  machine: string | null;
  program: string;
  started_at_ms: number;
  labels: { [name: string]: string };
}

/** A grid of measurements. */
export interface Sweep {
  source: string;
  /** The target and the axes with one value. */
  target: string;
  /** Name by which the page calls the result. The page sets it. */
  subject: string;
  headline: string;
  /** Axes; the last one is `iodepth`. */
  axes: Axis[];
  curves: SweepCurve[];
  notes: string[];
}

export interface Axis {
  name: string;
  values: string[];
}

/** All cells over depth for one combination of the other axes. */
export interface SweepCurve {
  /** Values of all axes but the last. */
  values: string[];
  /** Block size in bytes; the largest one if block sizes vary. */
  block_bytes: number;
  sentence: string | null;
  /** Knee: the lowest depth that reaches the maximum. */
  knee: number | null;
  /** Notes on this curve alone. */
  notes: string[];
  cells: SweepCell[];
}

export interface SweepCell {
  iodepth: number;
  basis: 'measured' | 'predicted' | 'unknown';
  iops: Rate | null;
  bytes_per_s: number | null;
  mean_ns: number | null;
  /** Percentiles 50, 99 and 99.9. */
  percentiles_ns: (number | null)[];
  /** The interval of the percentile 99, if it is known. */
  p99_between_ns?: [number, number];
  max_ns: number | null;
  /** Figures as all screens print them; `null` for a round of a PTS test. */
  shown: CellTexts | null;
}

/** Figures of a cell with their known digits; predicted ones in parentheses. `null`: not known. */
export interface CellTexts {
  iops: string | null;
  bandwidth: string | null;
  /** Half the intervals of a measured rate and bandwidth; `null` if they are not known. */
  iops_half: string | null;
  bandwidth_half: string | null;
  /** Why a measured rate has no interval. */
  doubt?: string;
  mean: string | null;
  p50: string | null;
  p99: string | null;
}

/** Latency over offered rate. */
export interface Load {
  source: string;
  target: string;
  /** Name by which the page calls the result. The page sets it. */
  subject: string;
  /** Step of a suite with its repetition, if the study is one. */
  step: string | null;
  headline: string;
  capacity_iops: number | null;
  /** The knee in words, or the highest sustained rate of a study that shows none. */
  knee: string;
  /** Offered rate at the knee; `null` if the study shows none. */
  knee_per_s: number | null;
  /** Highest offered rate that the target sustained, if any. */
  sustained_per_s: number | null;
  /** Results of the objectives. */
  objectives: string[];
  limits: ObjectiveLimit[];
  points: LoadPoint[];
  notes: string[];
  matrix: LoadMatrix | null;
}

/** An objective as a limit in the chart. */
export interface ObjectiveLimit {
  percentile: number;
  latency_ns: number;
  name: string;
  /** Side of the scale on which the objective lies; `null` if the scale contains it. */
  beyond: 'above' | 'below' | null;
}

export interface LoadPoint {
  offered_per_s: number;
  achieved_per_s: number;
  /** Outcome of the runs at the rate. Charts draw the first two. */
  state: 'sustained' | 'fell_behind' | 'interrupted' | 'failed';
  /** Percentiles 50, 95, 99 and 99.9. */
  percentiles_ns: (number | null)[];
  /** The percentiles as all screens print them. */
  shown: string[];
  /** `null` if no I/O was measured. */
  max_ns: number | null;
}

/** A matrix of read rates (columns) and write rates (rows). */
export interface LoadMatrix {
  reads_per_s: number[];
  writes_per_s: number[];
  cells: LoadCell[][];
}

export interface LoadCell {
  state: 'measured' | 'not_reached' | 'predicted' | 'predicted_not_reached' | 'unknown';
  p99_ns: number | null;
  /** The percentile, or the sign of a pair that fell behind, as all screens print it. */
  shown: string | null;
}

/** The spread of results that share a label. */
export interface Spread {
  title: string;
  rows: SpreadRow[];
}

export interface SpreadRow {
  what: string;
  /** The mean with its known digits, as all screens print it. */
  mean: string;
  runs: number;
  machines: number;
  /** Standard deviations in per cent of the mean. */
  within_percent: number | null;
  between_percent: number | null;
}

/** Facts with any fields, all of which are shown. */
export type Fact = { [name: string]: unknown };

export interface Plan {
  jobs: Job[];
  global_options: Given[];
  [name: string]: unknown;
}

export interface Job {
  name: string;
  given: Given[];
  [name: string]: unknown;
}

export interface Given {
  name: string;
  value: string;
}

export interface Study {
  source: string;
  target: string;
  /** Name by which the page calls the result. The page sets it. */
  subject: string;
  sentence: string;
  /** Limits of the rate of each kind of I/O, in a sentence each. */
  ceilings: string[];
  notes: string[];
  /** Patterns whose maximum the search did not find, each with the result in words. */
  unknown_maxima: [string, string][];
  interrupted: boolean;
  working_set_bytes: number;
}

export interface Run {
  name: string;
  source: string;
  study: number | null;
  place: string;
  /** Name by which the page calls the target or result. The page sets it. */
  subject: string;
  preparation: boolean;
  /** Whether the run is a cell of a sweep or load study, which is drawn as a whole. */
  of_grid: boolean;
  program: string;
  started_at_ms: number;
  elapsed_ns: number;
  host: number | null;
  memory_available_bytes: number | null;
  targets: number | null;
  plan: number | null;
  labels: { [name: string]: string };
  figures: Figure[];
  series: Series[];
  disks: Disk[];
  backends: Backend[];
  cpu: {
    user_ns: number;
    system_ns: number;
    context_switches: number;
    major_faults: number;
    minor_faults: number;
  } | null;
  events: { at_ns: number; message: string }[];
  verdicts: Verdict[];
  failures: string[];
}

export interface Verdict {
  kind: string;
  evidence: string;
}

export interface Backend {
  engine: string;
  asked: string;
  reason: string | null;
  direct: boolean;
  registered_files: boolean;
  fixed_buffers: boolean;
  flags?: string[];
}

export interface Disk {
  name: string;
  ios: [number, number];
  sectors: [number, number];
  ticks_ms: [number, number];
  in_queue_ms: number;
  util_percent: number;
  below: Disk[];
}

export interface Figure {
  job: string | null;
  direction: 'read' | 'write' | 'trim' | 'mixed' | 'sync';
  rw: string;
  block_bytes: [number, number];
  iodepth: number;
  workers: number;
  engine: string;
  direct: boolean | null;
  ios: number;
  bytes: number;
  iops: Rate;
  bytes_per_s: Rate;
  settled: boolean | null;
  /** Whether the rate reached the requested precision; `null` if none was requested. */
  sure: boolean | null;
  /** Course of a probe's rate in one word, as in the terminal: `steady`, `falling`. */
  shape: string | null;
  /** Intervals of the percentiles 50, 99 and 99.9, if they are known. */
  percentile_bounds: ([number, number] | null)[];
  /** Interval of the mean latency, if it is known. */
  mean_bounds: [number, number] | null;
  latency_kind: string;
  latency: Latency;
  shown: FigureTexts;
}

/** Rates and percentiles with the digits that their intervals support, as the terminal has them. */
export interface FigureTexts {
  /** The rate without its interval. */
  iops: string;
  /** Half the interval of the rate, `±1.2k`; `null` if it is not known. */
  iops_half: string | null;
  bandwidth: string;
  /** Half the interval of the bandwidth. */
  bandwidth_half: string | null;
  /** Why the rate has no interval. */
  doubt?: string;
  /** Mean latency; `null` if it was not measured. */
  mean: string | null;
  /** Percentiles 50, 99 and 99.9; `null` if too few I/Os were measured. */
  percentiles: [string | null, string | null, string | null];
}

/** A mean and half the width of its 95 % confidence interval. */
export interface Rate {
  mean: number;
  error: number | null;
}

export interface Latency {
  /** Number of I/Os; 0 if unknown, and then `min_ns` and `max_ns` are unknown too. */
  count: number;
  mean_ns: number;
  min_ns: number;
  max_ns: number;
  /** Percentiles at the shares that `tails` returns. */
  curve_ns: number[];
  /** Percentiles of the tables: share of slower I/Os, and latency. */
  marks: [number, number][];
  /** Index and count of each coarse histogram bucket that is not empty. */
  buckets: [number, number][];
}

export interface Series {
  of: string;
  at_s: number[];
  end_s: number;
  ramp: number;
  tracks: Track[];
}

export interface Track {
  group: string;
  name: string;
  unit: Unit;
  values: (number | null)[];
}

/** Units of figures and of device columns. */
export type Unit = 'iops' | 'bytes_per_s' | 'ns' | 'percent' | 'count';

export interface Promised {
  product: string;
  place: string;
  source: string;
  /** Result of the check against a probe, if there was one. */
  sentence: string | null;
  /** Conditions of the promise that were not measured or not checked. */
  conditions: string[];
  rows: PromisedRow[];
}

export interface PromisedRow {
  what: string;
  unit: Unit;
  promised: number;
  measured: Rate;
  verdict: string;
  kept: boolean | null;
}

const STEPS = [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15];

/** Shares of slower I/Os at which `curve_ns` is sampled; equal to `curve.rs`. */
export function tails(points: number): number[] {
  return Array.from({ length: points }, (_, index) => {
    const step = STEPS[index % STEPS.length] ?? 1;
    return step * 10 ** -Math.floor(index / STEPS.length);
  });
}

/** Latency that a share `tail` of all I/Os exceeds, if the tables show it. */
export function percentile(latency: Latency, tail: number): number | null {
  return latency.marks.find(([share]) => Math.abs(share / tail - 1) < 1e-6)?.[1] ?? null;
}

const SUB_BITS = 3;

/** Bounds of a coarse bucket: the first is included, the second is not. */
export function bucketRange(index: number): [number, number] {
  const sub = 1 << SUB_BITS;
  if (index < 2 * sub) return [index, index + 1];
  const width = 2 ** ((index >> SUB_BITS) - 1);
  const from = (sub + (index & (sub - 1))) * width;
  return [from, from + width];
}
