// Charts of `iosonde plot` and charts of the page show the same result with the same data, names and axes.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { altered, close, documentOf, drawn, files, iosonde, isRounded, launch, open, report, simulated, tableBehind, temporary, unfold } from './browser.mjs';

/** Runs and the rows that charts draw, starts of slices and the number that charts draw, targets and their names: the tests of `plot` read them too. */
const RANKS = new URL('../../crates/report/src/plot/workload_ranks.json', import.meta.url);
const NAMES = new URL('../../crates/report/src/html/target_names.json', import.meta.url);
const SLICES = new URL('../../crates/report/src/plot/whole_slices.json', import.meta.url);
/** Figures with and without their intervals: the tests of the program read them too. */
const FIGURES = new URL('../../crates/report/src/known_digits/figures.json', import.meta.url);
const made = {};

before(async () => {
  await launch();
  made.probe = simulated('probe', 'sim:nvme');
  made.other = simulated('probe', 'sim:hdd', '--quick');
  made.sweep = simulated('sweep', 'sim:sata-ssd,seed=2', '--rw', 'randread', '--bs', '4k,16k', '--iodepth', '1,4,16', '--exhaustive', '--runtime', '1');
  made.matrix = simulated('load', 'sim:read_us=700,write_us=700,parallel=4', '--rw', 'randrw', '--matrix', '5', '--runtime', '1');
  made.load = simulated('load', 'sim:read_us=700,write_us=700,parallel=4', '--rw', 'randread', '--runtime', '1');
});

after(close);

/** The data of a chart of `plot`. */
function plotted(chart, ...results) {
  const [data] = JSON.parse(iosonde('plot', ...results, '--chart', chart, '--format', 'json'));
  return data;
}

/** Opens the page of the results, and returns the table behind a chart and the texts in the chart. */
async function paged(id, ...results) {
  const { page, close } = await open(report(`plot-${id}`, ...results));
  const panel = await drawn(page, id);
  const texts = await panel.locator('.canvas svg text').allTextContents();
  const behind = await tableBehind(panel);
  await close();
  return { ...behind, texts };
}

/** The chart of the page has the same ticks. Crowded labels are left out, but for the last one below a chart. */
function sameAxes({ x, panels }, texts) {
  // The title of the page's axis has the unit of percentiles.
  const last = x.ticks.at(-1).text.replace(/^([\d.]+) %$/, '$1');
  assert.ok(texts.includes(last), `${x.label}: ${last} is not among ${texts}`);
  for (const { y } of panels) {
    const shared = y.ticks.filter(({ text }) => texts.includes(text));
    assert.ok(shared.length >= 2, `${y.label}: ${y.ticks.map(({ text }) => text)} and ${texts}`);
  }
}

const near = (a, b) => Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));

describe('plot and page', () => {
  test('rates over depth', async () => {
    const data = plotted('iops-over-depth', made.probe);
    const measures = ['depth-iops', 'depth-bandwidth'];
    assert.equal(data.panels.length, measures.length);
    for (const [index, id] of measures.entries()) {
      const { head, rows, texts } = await paged(id, made.probe);
      const { series, y } = data.panels[index];
      assert.deepEqual(series.map((each) => each.name), head.slice(1));
      series.forEach((each, column) => {
        const shown = rows.filter((row) => row[column + 1] !== '');
        assert.deepEqual(each.points.map((point) => point.x), shown.map(([depth]) => Number(depth)));
        each.points.forEach((point, at) => assert.ok(isRounded(shown[at][column + 1], point.y), `${shown[at][column + 1]}, not ${point.y}`));
      });
      const shared = y.ticks.filter(({ text }) => texts.includes(text));
      assert.ok(shared.length >= 2, `${y.label}: ${y.ticks.map(({ text }) => text)} and ${texts}`);
    }
  });

  test('latency by percentile', async () => {
    const data = plotted('latency', ...files('mixed'));
    const { head, rows, texts } = await paged('percentiles', ...files('mixed'));
    const [{ series }] = data.panels;
    assert.deepEqual(series.map((each) => each.name), head.slice(1));
    series.forEach((each, index) => {
      const column = rows.map((row) => row[index + 1]).filter((cell) => cell !== '').map(Number);
      assert.equal(each.points.at(-1).y, column.at(-1), 'the curve ends at the maximum');
      for (const point of each.points) assert.ok(column.some((ns) => near(Math.max(ns, 1), point.y)), `${each.name}: ${point.y}`);
      assert.ok(each.points.length > 10);
    });
    sameAxes(data, texts);
  });

  test('shares of latency by bin', async () => {
    const data = plotted('histogram', ...files('mixed'));
    const [{ y, series }] = data.panels;
    const { page, close } = await open(report('plot-histogram', ...files('mixed')));
    await unfold(page, 'figures');
    const panel = await drawn(page, 'histogram');
    const texts = await panel.locator('.canvas svg text').allTextContents();
    assert.ok(texts.includes(y.label), `${y.label}: ${texts}`);
    await panel.locator('.canvas').focus();
    for (const [index, { x }] of series[0].points.entries()) {
      await page.keyboard.press(index === 0 ? 'Home' : 'ArrowRight');
      const shown = await panel.locator('.tooltip .tip').allTextContents();
      assert.deepEqual(shown, series.map(({ name, points }) => `${name}${points[index].y.toPrecision(3)} %`), `${x} ns`);
    }
    await close();
  });

  test('latency by percentile of two targets is that of the same workload', async () => {
    const data = plotted('latency', made.probe, made.other);
    const { head, rows } = await paged('percentiles', made.probe, made.other);
    const [{ series }] = data.panels;
    assert.equal(series.length, 2);
    assert.equal(head.length, series.length + 1, `${head}`);
    series.forEach((each, index) => {
      assert.ok(head[index + 1].startsWith(`${each.name}: `), `${each.name}: ${head}`);
      assert.equal(each.points.at(-1).y, Number(rows.at(-1)[index + 1]), `${head}`);
    });
  });

  test('rates over time', async () => {
    const data = plotted('timeline', ...files('mixed'));
    const { head, rows, texts } = await paged('timeline', ...files('mixed'));
    const units = { iops: '1/s', bytes_per_s: 'B/s', ns: 'ns' };
    for (const { y, series } of data.panels) {
      for (const each of series) {
        const column = head.indexOf(`${y.label} ${each.name} (${units[y.unit]})`);
        assert.ok(column > 0, `${y.label} ${each.name}: ${head}`);
        // The last point repeats the last value at the end of the run.
        each.points.slice(0, -1).forEach((point, at) => {
          assert.equal(point.x, Number(rows[at][0]));
          assert.equal(point.y, Number(rows[at][column]));
        });
      }
    }
    sameAxes(data, texts);
  });

  test('rows without colour give way in the order of their ranks', async () => {
    const whole = report('plot-ranks', ...files('mixed'));
    const { page, show, close } = await open();
    for (const [number, [runs, names]] of JSON.parse(readFileSync(RANKS, 'utf8')).entries()) {
      const path = altered(whole, `plot-ranks-case-${number}`, (document) => {
        const like = document.runs.find((each) => !each.preparation && !each.of_grid);
        const [figure] = like.figures;
        const figureOf = ([direction, rw, bytes, iodepth, workers]) => ({ ...figure, job: null, direction, rw, block_bytes: [bytes, bytes], iodepth, workers });
        document.runs = runs.map(([name, figures]) => ({ ...like, name, figures: figures.map(figureOf) }));
      });
      await show(path);
      const { head } = await tableBehind(await drawn(page, 'percentiles'));
      assert.deepEqual(head.slice(1), names);
    }
    await close();
  });

  test('targets have the names of plot', async () => {
    const whole = report('plot-names', ...files('mixed'));
    const like = documentOf(whole).runs.find((each) => each.plan !== null);
    const { page, show, close } = await open();
    for (const [number, [place, source, isOfStudy, ofGrid, hasDevice, name]] of JSON.parse(readFileSync(NAMES, 'utf8')).single.entries()) {
      const path = altered(whole, `plot-names-case-${number}`, (document) => {
        const run = { ...like, plan: 0, labels: {}, program: 'fio-3.33', preparation: false };
        const other = { ...run, place: 'sim:other', source: 'other', study: null, of_grid: false, targets: null };
        document.plans = [document.plans[like.plan]];
        document.targets = [[{ mount: { source: '/dev/vda1', fs_type: 'ext4' } }]];
        document.runs = [{ ...run, place, source, study: isOfStudy ? 0 : null, of_grid: ofGrid, targets: hasDevice ? 0 : null }, other];
      });
      await show(path);
      await unfold(page, 'plans');
      const users = await page.locator('#plan-0 small').first().textContent();
      assert.ok(users.startsWith(`used by: ${name}: `), `${place}: ${users}`);
    }
    await close();
  });

  test('labels shared by several places have the names of plot', async () => {
    const whole = report('plot-labels', ...files('mixed'));
    const like = documentOf(whole).runs.find((each) => each.plan !== null);
    for (const runs of JSON.parse(readFileSync(NAMES, 'utf8')).labelled) {
      const path = altered(whole, 'plot-labels-case', (document) => {
        document.plans = runs.map(() => document.plans[like.plan]);
        document.runs = runs.map(([place, ofGrid, labels], plan) => ({ ...like, place, of_grid: ofGrid, labels, plan, source: 'result.json', program: 'fio-3.33', preparation: false, study: null, targets: null }));
      });
      const { page, close } = await open(path);
      await unfold(page, 'plans');
      for (const [plan, [place, , , name]] of runs.entries()) {
        const users = await page.locator(`#plan-${plan} small`).first().textContent();
        assert.ok(users.startsWith(`used by: ${name}: `), `${place}: ${users}`);
      }
      await close();
    }
  });

  test('a last slice that was cut short is not drawn', async () => {
    const whole = report('plot-slices', ...files('mixed'));
    const { page, show, close } = await open();
    for (const [number, [at_s, end_s, count]] of JSON.parse(readFileSync(SLICES, 'utf8')).entries()) {
      // Only the last slice has a rate of thousands, which its axis shows.
      const values = at_s.map((_, index) => (index + 1 < at_s.length ? 10 : 5000));
      const path = altered(whole, `plot-slices-case-${number}`, ({ runs }) => {
        for (const run of runs) {
          run.events = [];
          run.series = [{ of: 'run', at_s, end_s, ramp: 0, tracks: [{ group: 'IOPS', name: 'read', unit: 'iops', values }] }];
        }
      });
      await show(path);
      const texts = await (await drawn(page, 'timeline')).locator('.canvas svg text').allTextContents();
      assert.equal(texts.some((text) => /^[\d.]+k$/.test(text)), count === at_s.length, `${at_s} to ${end_s}: ${texts}`);
    }
    await close();
  });

  test('the note below a chart explains its ramp', async () => {
    const path = altered(report('plot-ramp', made.probe), 'plot-ramp-shaded', ({ runs }) => {
      for (const { series } of runs) for (const each of series) each.ramp = 1;
    });
    const { page, close } = await open(path);
    const panel = await drawn(page, 'timeline');
    assert.match(await panel.locator('.note').textContent(), /Shaded: the ramp/);
    assert.ok((await panel.locator('.canvas svg text').allTextContents()).includes('seconds since the start of the run'));
    await close();
  });

  test('notes on a search stand below the chart of its curve only', async () => {
    const path = report('plot-notes', made.probe);
    const [{ curves }] = documentOf(path).knees;
    assert.ok(curves.some((curve) => curve.notes.length > 0));
    const { page, close } = await open(path);
    for (const [id, isLarge] of [['depth-iops', false], ['depth-bandwidth', true]]) {
      const note = await (await drawn(page, id)).locator('.note').textContent();
      for (const curve of curves)
        for (const text of curve.notes) assert.equal(note.includes(text.slice(1)), curve.block_bytes >= 64 << 10 === isLarge, `${id}: ${note}`);
    }
    await close();
  });

  test('a logarithmic axis contains whole intervals', async () => {
    const path = altered(report('plot-interval', made.probe), 'plot-interval-low', ({ knees: [{ curves }] }) => {
      const cell = curves.flatMap((curve) => curve.cells).find((each) => each.basis === 'measured' && each.percentiles_ns[1] !== null);
      const ns = cell.percentiles_ns[1];
      cell.p99_between_ns = [ns / 10_000, ns * 2];
    });
    const { page, close } = await open(path);
    const texts = await (await drawn(page, 'depth-latency')).locator('.canvas svg text').allTextContents();
    assert.ok(texts.some((text) => /^\d+ ns$/.test(text.replace('\u00a0', ' '))), `${texts}`);
    await close();
  });

  test('points of a chart without any interval are filled, and a note says why', async () => {
    const path = altered(report('plot-doubts', made.probe), 'plot-doubts-all', ({ knees }) => {
      for (const cell of knees.flatMap(({ curves }) => curves).flatMap(({ cells }) => cells)) cell.p99_between_ns = null;
    });
    const { page, close } = await open(path);
    const panel = await drawn(page, 'depth-latency');
    const dots = await panel.locator('.canvas svg circle').evaluateAll((all) => all.map((dot) => dot.getAttribute('fill') === dot.getAttribute('stroke')));
    assert.ok(dots.length > 0 && dots.every(Boolean), `${dots}`);
    assert.match(await panel.locator('.note').textContent(), /No point has a 95 % interval/);
    await close();
  });

  test('workload of a single target has one colour and line style in all charts', async () => {
    const [styles, strokes] = [new Map(), new Map()];
    let repeated = 0;
    const add = (known, name, style, chart) => {
      if (known.has(name)) repeated += 1;
      assert.equal(known.get(name) ?? style, style, `${chart}: ${name}`);
      known.set(name, style);
    };
    for (const chart of ['iops-over-depth', 'latency', 'histogram'])
      for (const { name, slot, dash } of plotted(chart, made.probe).panels.flatMap(({ series }) => series)) add(styles, name, `${slot} ${dash}`, chart);
    assert.equal(new Set(styles.values()).size, styles.size, 'workloads differ');
    const { page, close } = await open(report('plot-workloads', made.probe));
    for (const id of ['depth-iops', 'depth-bandwidth', 'percentiles']) {
      const panel = await drawn(page, id);
      const shown = await panel.locator('.canvas svg path.line').evaluateAll((all) => all.map((line) => `${line.getAttribute('stroke')} ${line.getAttribute('stroke-dasharray')}`));
      const { head } = await tableBehind(panel);
      assert.equal(shown.length, head.length - 1);
      shown.forEach((stroke, index) => add(strokes, head[index + 1], stroke, id));
    }
    assert.ok(repeated > 2, 'nothing is tested');
    // Workloads share a colour, or dashes, in the plot exactly if they do on the page.
    const parts = (known, name) => known.get(name).split(/ (.*)/);
    for (const one of strokes.keys())
      for (const other of strokes.keys())
        for (const part of [0, 1]) {
          const [inPlot, onPage] = [styles, strokes].map((known) => parts(known, one)[part] === parts(known, other)[part]);
          assert.equal(inPlot, onPage, `${one}, ${other}`);
        }
    await close();
  });

  test('subjects that share a colour differ in their line styles', async () => {
    const path = altered(report('plot-styles', made.probe), 'plot-styles-seven', (document) => {
      const run = document.runs.find((each) => !each.preparation && !each.of_grid);
      const names = Array.from({ length: 7 }, (_, index) => `sim:t${index}`);
      document.runs = names.map((place) => ({ ...run, source: place, place }));
      const [like] = document.knees;
      const curves = like.curves.filter((curve) => curve.block_bytes < 64 << 10).slice(0, 2);
      document.knees = [0, 6].map((index) => ({ ...like, source: names[index], target: names[index], curves }));
    });
    const { page, close } = await open(path, { viewport: { width: 1400, height: 900 } });
    const lines = await (await drawn(page, 'depth-iops')).locator('.canvas svg path.line').evaluateAll((all) => all.map((line) => `${line.getAttribute('stroke')} ${line.getAttribute('stroke-dasharray')}`));
    assert.equal(lines.length, 4);
    assert.equal(new Set(lines).size, lines.length, `${lines}`);
    await close();
  });

  test('latency over the offered rate', async () => {
    const data = plotted('latency', made.load);
    const { head, rows, texts } = await paged('load-0-latency', made.load);
    for (const each of data.panels[0].series) {
      const column = head.indexOf(each.name);
      const shown = rows.filter((row) => row[column] !== '' && ['yes', 'no'].includes(row[2]));
      assert.deepEqual(each.points.map((point) => Math.round(point.x)), shown.map(([offered]) => Number(offered)));
      assert.deepEqual(each.points.map((point) => !point.hollow), shown.map((row) => row[2] === 'yes'));
    }
    sameAxes(data, texts);
  });

  test('a heat map', async () => {
    const data = plotted('heatmap', made.sweep);
    const { head, rows, texts } = await paged('sweep-0-map-0', made.sweep);
    const [{ y, cells }] = data.panels;
    assert.deepEqual(data.x.ticks.map(({ text }) => text), head.slice(1));
    assert.deepEqual(y.ticks.map(({ text }) => text), rows.map(([name]) => name));
    assert.equal(cells.length, 6);
    for (const { text } of cells) assert.ok(texts.some((shown) => shown.replace('\u00a0', ' ') === text), `${text}: ${texts}`);
  });

  test('a heat map of a matrix of rates', async () => {
    const data = plotted('heatmap', made.matrix);
    const { rows, texts } = await paged('load-0-matrix', made.matrix);
    const [{ cells }] = data.panels;
    const marked = cells.filter(({ text }) => text.startsWith('('));
    assert.ok(marked.length > 0, JSON.stringify(cells));
    const behind = rows.flat().map((said) => said.replace('\u00a0', ' '));
    for (const said of behind) assert.ok(!/\).*predicted/.test(said), `${said}: parentheses say that already`);
    for (const { text } of marked) assert.ok(behind.some((said) => said.startsWith(text)), `${text}: ${behind}`);
    for (const { text } of cells) assert.ok(texts.some((shown) => shown.replace('\u00a0', ' ') === text), `${text}: ${texts}`);
  });

  test('the written file is what the data says', async () => {
    const svg = temporary('depth.svg');
    iosonde('plot', made.probe, '--chart', 'iops-over-depth', '-o', svg);
    const { page, trouble, close } = await open(svg);
    const data = plotted('iops-over-depth', made.probe);
    const points = data.panels.flatMap((panel) => panel.series).reduce((count, each) => count + each.points.length, 0);
    assert.equal(await page.locator('circle').count(), points);
    const boxes = await page.locator('text').evaluateAll((all) =>
      all.map((text) => {
        const { left, right, top, bottom } = text.getBoundingClientRect();
        return { left, right, top, bottom, text: text.textContent };
      }),
    );
    boxes.forEach((one, index) => {
      assert.ok(one.left >= 0 && one.right <= 1200 && one.top >= 0 && one.bottom <= 675, `${one.text} is cut off`);
      for (const other of boxes.slice(index + 1)) {
        const apart = one.right <= other.left || other.right <= one.left || one.bottom <= other.top + 4 || other.bottom <= one.top + 4;
        assert.ok(apart, `${one.text} overlaps ${other.text}`);
      }
    });
    assert.deepEqual(trouble, []);
    await close();
  });

  test('figures have the digits that their intervals support, as in the program', async () => {
    const measures = { iops: 'iops', bytes_per_s: 'bandwidth', ns: 'mean' };
    const two = report('plot-two', simulated('probe', 'sim:nvme', 'sim:sata-ssd'));
    const { page, show, close } = await open();
    for (const [number, [unit, value, half, text, without]] of JSON.parse(readFileSync(FIGURES, 'utf8')).entries()) {
      const path = altered(two, `plot-digits-${number}`, ({ runs }) => {
        for (const figure of runs.flatMap(({ figures }) => figures)) {
          if (unit === 'ns') {
            figure.latency.mean_ns = value;
            figure.mean_bounds = half === null ? null : [value - half, value + half];
          } else {
            figure[unit] = { mean: value, error: half };
          }
        }
      });
      await show(path);
      await unfold(page, 'comparison');
      await page.getByLabel('Compare by').selectOption(measures[unit]);
      const panel = await drawn(page, 'comparison-0');
      const { rows } = await tableBehind(panel);
      assert.equal(rows[0][1], text);
      assert.ok((await panel.locator('.canvas svg text').allTextContents()).includes(without), without);
    }
    await close();
  });
});
