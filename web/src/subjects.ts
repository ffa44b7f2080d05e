// Names of what is compared: by label or device, never by the name of a file of results.

import type { Fact, Load, Report, Run, Sweep } from './document';
import { moment } from './format';
import { groupBy, workloadOf } from './rows';

/** Paths that a program has made up for a while. A name without a slash is never one. */
const TEMPORARY = /(^|\/)(tmp|temp|\.tmp[^/]*|tmp\.[^/]*)(\/|$)/i;

/** Removes results that the report has twice, and names the subjects of the others. */
export function prepared(report: Report): Report {
  const distinct = {
    ...report,
    runs: once(report.runs, (run) => [
      run.place,
      run.started_at_ms,
      run.elapsed_ns,
      run.plan,
      run.labels,
      run.figures,
    ]),
    sweeps: once(report.sweeps, ({ source: _, ...sweep }) => sweep),
    knees: once(report.knees, ({ source: _, ...knees }) => knees),
    loads: once(report.loads, ({ source: _, ...load }) => load),
    studies: report.studies,
  };
  nameSubjects(distinct);
  return distinct;
}

function once<T>(items: T[], key: (item: T) => unknown): T[] {
  return [...groupBy(items, (item) => JSON.stringify(key(item))).values()].flatMap((same) =>
    same.slice(0, 1),
  );
}

function nameSubjects(report: Report): void {
  const labels = distinguishing(report.runs);
  const isLabelled = report.runs.every((run) => labels.every((label) => label in run.labels));
  for (const run of report.runs) {
    const values = labels.flatMap((label) => {
      const value = run.labels[label];
      return value === undefined ? [] : [`${label}=${value}`];
    });
    const place = gridTarget(run) ?? placeName(report, run);
    if (values.length === 0) run.subject = place;
    else run.subject = isLabelled ? values.join(', ') : `${place} (${values.join(', ')})`;
  }
  // Subjects with the same name on different places are distinguished by their places.
  for (const same of groupBy(report.runs, (run) => run.subject).values()) {
    if (new Set(same.map((run) => gridTarget(run) ?? run.place)).size < 2) continue;
    for (const run of same) {
      const place = gridTarget(run) ?? placeName(report, run);
      if (run.subject !== place) run.subject = `${place} (${run.subject})`;
    }
  }
  for (const same of groupBy(report.runs, (run) => run.subject).values()) splitResults(same);
  const named = (one: Sweep | Load) =>
    report.runs.find((run) => run.source === one.source && run.place === one.target) ??
    report.runs.find((run) => run.source === one.source);
  for (const one of [...report.sweeps, ...report.knees, ...report.loads])
    one.subject = named(one)?.subject ?? one.target;
  for (const study of report.studies)
    study.subject =
      report.runs.find((run) => run.source === study.source && run.place === study.target)
        ?.subject ?? study.target;
}

/** Runs of a grid on a simulated device have a number each, which is no part of their target. */
function gridTarget(run: Run): string | null {
  const [, target] = /^(sim:.*),run=\d+$/.exec(run.place) ?? [];
  return run.of_grid && target !== undefined ? target : null;
}

/** Results of one subject that measured the same workload: by time, or by number. */
function splitResults(runs: Run[]): void {
  // Runs of a grid count too: two sweeps of a target would have one name.
  const measured = runs.filter((run) => !run.preparation);
  const workloads = groupBy(measured, (run) =>
    JSON.stringify([run.name, ...run.figures.map(workloadOf)]),
  );
  const repeated = [...workloads.values()].some(
    (same) => new Set(same.map((run) => run.source)).size > 1,
  );
  if (!repeated) return;
  const results = [...groupBy(runs, (run) => run.source).values()];
  const times = results.map(([run]) => run?.started_at_ms ?? 0);
  const isTimed = new Set(times).size === times.length && !times.includes(0);
  results.forEach((result, index) => {
    for (const run of result)
      run.subject += isTimed ? `, ${moment(times[index] ?? 0)}` : ` #${index + 1}`;
  });
}

/** Labels that differ between the results. */
function distinguishing(runs: Run[]): string[] {
  const all = new Set(runs.flatMap((run) => Object.keys(run.labels)));
  return [...all].filter((label) => new Set(runs.map((run) => run.labels[label])).size > 1);
}

function placeName(report: Report, run: Run): string {
  const target = run.targets === null ? undefined : report.targets[run.targets]?.[0];
  const device = target ? deviceName(target) : '';
  const isKnown = run.place !== run.source;
  if (isKnown && !run.place.includes('/')) return run.place === '' ? run.program : run.place;
  // The target of a study is a path that the user has chosen.
  const isOfStudy = run.study !== null || run.of_grid;
  const isUnnamed = !isKnown || (!isOfStudy && TEMPORARY.test(run.place));
  if (device === '') return isUnnamed ? machineName(run) : run.place;
  return isUnnamed ? device : `${run.place} on ${device}`;
}

/** Name of a result whose target is unknown. */
function machineName(run: Run): string {
  return Object.values(run.labels)[0] ?? run.program;
}

/** Devices and file system of a target: `nvme0n1, ext4`. */
export function deviceName(target: Fact): string {
  const { source, fileSystem } = deviceParts(target);
  return [source, fileSystem].filter((text) => text !== '').join(', ');
}

/** Devices of a target, or the source of its mount if there is none, and its file system. */
export function deviceParts(target: Fact): { source: string; fileSystem: string } {
  const devices = (target['devices'] ?? []) as { name?: string }[];
  const mount = target['mount'] as { fs_type?: string; source?: string } | null | undefined;
  const names = devices.flatMap((device) => device.name ?? []);
  const source = names.length > 0 ? names.slice(0, 3).join(' and ') : (mount?.source ?? '');
  return { source, fileSystem: mount?.fs_type ?? '' };
}

/** Name of a load study: its subject, and its step in a suite. */
export function loadName({ step, subject }: Load): string {
  return step === null ? subject : `${step} on ${subject}`;
}

/** Subjects in order of appearance. */
export function subjectsOf(report: Report): string[] {
  return [
    ...new Set([
      ...report.runs.filter((run) => !run.preparation && !run.of_grid).map((run) => run.subject),
      ...[...report.sweeps, ...report.loads].map((one) => one.subject),
    ]),
  ];
}
