// Sweeps and figures by labels in a real browser: what is drawn, and that it is what was measured.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { altered, close, documentOf, drawn, iosonde, launch, open, read, report, simulated, tableBehind, temporary } from './browser.mjs';

/** A job file of the kind that people loop over: six jobs, one after the other. */
const JOBS = `[global]
ioengine=libaio
direct=1
size=1g
group_reporting
${[['4k_randwrite', 'randwrite', '4k'], ['4k_randread', 'randread', '4k'], ['64k_write', 'write', '64k'], ['64k_read', 'read', '64k'], ['1M_write', 'write', '1m'], ['1M_read', 'read', '1m']]
  .map(([name, rw, bs]) => `[${name}]\nstonewall\nrw=${rw}\nbs=${bs}\n`)
  .join('')}`;

/** Devices that do few I/Os, so that simulating them takes no time. */
const REGIONS = { asia: 1, europe: 1.1, us: 0.9 };
const PRODUCTS = {
  'pd-ssd': ['read_us=700,parallel=8,cap_iops=2000,cap_bw=30m', 'gcp-pd-ssd:60GiB,as-of=2016'],
  'pd-standard': ['read_us=5000,parallel=4,cap_iops=270,cap_bw=40m', 'gcp-pd-standard:375GiB,as-of=2016'],
};
const VALUES = ['read.max_bw', 'write.max_bw', 'randread.max_iops', 'randwrite.max_iops'];
const made = {};

before(async () => {
  await launch();
  const job = temporary('article.fio');
  writeFileSync(job, JOBS);
  made.json = temporary('sweep.json');
  iosonde('sweep', job, 'sim:ceph', '--numjobs', '1,16', '--iodepth', '1..32', '--runtime', '2', '--format', 'json', '--output', made.json, '--no-save');
  made.sweep = report('sweep', made.json);
  made.grid = report('grid', simulated('sweep', 'sim:sata-ssd,seed=2', '--rw', 'randread,randwrite', '--bs', '4k,16k', '--iodepth', '1,4,16', '--exhaustive', '--runtime', '1'));
  made.load = report('load', simulated('load', 'sim:read_us=700,write_us=700,parallel=4', '--rw', 'randrw', '--matrix', '5', '--runtime', '1'));
  made.store = temporary('pivot.db');
  for (const [region, factor] of Object.entries(REGIONS)) {
    for (const [device, [model]] of Object.entries(PRODUCTS)) {
      const target = `sim:${model},write_us=${Math.round(900 * factor)},noise=0.02`;
      iosonde('sweep', target, '--rw', 'read,write,randread,randwrite', '--bs', '4k,256k', '--iodepth', '1..8', '--runtime', '4', '--label', `region=${region}`, '--label', `device=${device}`, '--store', made.store);
    }
  }
  made.pivot = temporary('pivot.html');
  pivot('--output', made.pivot);
});

after(close);

function pivot(...more) {
  const values = VALUES.flatMap((value) => ['--value', value]);
  const promised = Object.entries(PRODUCTS).flatMap(([device, [, product]]) => ['--expect', `${device}=${product}`]);
  return iosonde('show', '--store', made.store, '--pivot', 'region x device', ...values, ...promised, ...more);
}

async function everyChart(page, name) {
  const ids = await page.locator('figure.panel').evaluateAll((panels) => panels.map((panel) => panel.id));
  for (const id of ids) {
    const panel = await drawn(page, id);
    const paths = await panel.locator('.canvas svg path').evaluateAll((all) => all.filter((path) => (path.getAttribute('d') ?? '').length > 10).length);
    assert.ok(paths > 3, `${name} ${id}: ${paths} paths`);
    assert.equal(await panel.getByText(/NaN|undefined|Infinity/).count(), 0, `${name} ${id}`);
  }
  return ids;
}

const titles = (page) => page.locator('figure.panel h3').allInnerTexts();

/** Keeps what a person should look at, where somebody asked for it. */
async function picture(page, name) {
  const directory = process.env.IOSONDE_SCREENSHOTS;
  if (!directory) return;
  mkdirSync(directory, { recursive: true });
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true });
}

describe('sweeps', () => {
  test('a job file over depth and jobs: a chart for each number of jobs', async () => {
    const { page, trouble, close } = await open(made.sweep);
    await everyChart(page, 'sweep');
    const found = await titles(page);
    for (const title of ['1 job: IOPS over iodepth', '1 job: Bandwidth over iodepth', '16 jobs: IOPS over iodepth', '16 jobs: Bandwidth over iodepth']) assert.ok(found.includes(title), `${title}: ${found}`);
    const { head, rows } = await tableBehind(page.locator('#sweep-0-curves-0'));
    assert.deepEqual(head, ['iodepth', '4k_randwrite', '4k_randread']);
    assert.deepEqual(rows.map(([depth]) => depth), ['1', '2', '4', '8', '16', '32']);
    // What was not measured is said to be predicted, with how far it may be off; what could be anything is not known.
    const { sweep } = read(made.json);
    const cells = sweep.curves.filter((curve) => curve.values.join().includes('4k_randwrite') && curve.numjobs === 1).flatMap((curve) => curve.cells);
    const isAnything = (cell) => cell.basis === 'predicted' && cell.iops.error > cell.iops.mean;
    cells.forEach((cell, index) => assert.equal(rows[index][1].includes('predicted'), cell.basis === 'predicted' && !isAnything(cell), rows[index][1]));
    cells.forEach((cell, index) => assert.equal(/\d/.test(rows[index][1]), !isAnything(cell), rows[index][1]));
    assert.ok(sweep.curves.flatMap((curve) => curve.cells).some((cell) => cell.basis === 'predicted' && cell.iops.error !== null));
    await picture(page, 'sweep');
    assert.deepEqual(trouble, []);
    await close();
  });

  test('what a predicted cell of a map may be off is told', async () => {
    const { page, close } = await open(made.sweep);
    const map = page.locator('figure.panel', { has: page.locator('h3', { hasText: /^16 jobs.* over iodepth and job/ }) }).first();
    const { rows } = await tableBehind(map);
    const predicted = rows.flat().filter((cell) => cell.includes('predicted'));
    assert.ok(predicted.length > 0 && predicted.some((cell) => cell.includes('±')), JSON.stringify(rows));
    await close();
  });

  test('percentiles fan out over the depth', async () => {
    const { page, trouble, close } = await open(made.grid);
    await page.locator('select').first().selectOption({ label: 'Percentiles of latency' });
    const ids = await everyChart(page, 'fan');
    assert.ok(ids.includes('sweep-0-fan-3'), `${ids}`);
    const { head, rows } = await tableBehind(page.locator('#sweep-0-fan-0'));
    assert.deepEqual(head, ['iodepth', 'p50', 'p99', 'p99.9', 'longest', 'mean']);
    assert.equal(rows.length, 3);
    assert.ok(rows.every((row) => row.slice(1, 3).every((cell) => /\d (ns|µs|ms)/.test(cell))), JSON.stringify(rows));
    await picture(page, 'fan');
    assert.deepEqual(trouble, []);
    await close();
  });

  test('patterns side by side are bars, block sizes a curve', async () => {
    const { page, trouble, close } = await open(made.grid);
    const [, over, each] = await page.locator('select').all();
    await over.selectOption({ label: 'rw' });
    await each.selectOption({ label: 'iodepth' });
    await everyChart(page, 'bars');
    const panel = await drawn(page, 'sweep-0-curves-0');
    const { head, rows } = await tableBehind(panel);
    assert.deepEqual([head, rows.map(([name]) => name)], [['pattern', '4k', '16k'], ['randread', 'randwrite']]);
    // Arrow keys step through groups, and what is there is spoken.
    await panel.locator('.canvas').press('Home');
    assert.match(await panel.locator('[aria-live]').textContent(), /randread.*4k.*16k/);
    await over.selectOption({ label: 'bs' });
    assert.ok((await titles(page)).some((title) => title.includes('over bs')));
    await everyChart(page, 'sizes');
    assert.deepEqual(trouble, []);
    await close();
  });

  test('title names the single curve of a chart', async () => {
    const path = altered(made.grid, 'grid-large', ({ sweeps: [sweep] }) => {
      for (const curve of sweep.curves) if (curve.values.includes('16k')) curve.block_bytes = 64 << 10;
    });
    const { page, close } = await open(path);
    const found = await titles(page);
    for (const title of ['randread 4k: IOPS over iodepth', 'randread 16k: Bandwidth over iodepth']) assert.ok(found.includes(title), `${title}: ${found}`);
    await close();
  });

  test('line is interrupted where nothing is known, and its cell is not predicted', async () => {
    const path = altered(made.grid, 'grid-unknown', ({ sweeps: [sweep] }) => {
      for (const { iops } of sweep.curves.flatMap((curve) => curve.cells)) iops.error = iops.mean / 10;
      const [, middle] = sweep.curves[0].cells;
      Object.assign(middle, { basis: 'predicted', iops: null, bytes_per_s: null, shown: null });
      const pattern = sweep.axes.findIndex((axis) => axis.name === 'rw');
      const [, second] = sweep.curves.filter((curve) => curve.values[pattern] === sweep.curves[0].values[pattern]);
      second.cells[0].iops.error = null;
    });
    const { page, close } = await open(path);
    const lines = (await drawn(page, 'sweep-0-curves-0')).locator('.canvas svg path.line');
    const moves = await lines.evaluateAll((all) => all.map((line) => line.getAttribute('d').match(/M/g).length));
    assert.deepEqual(moves, [2, 1]);
    // The first curve has an interval at either side of the gap, the second one a band of two points.
    const svg = page.locator('#sweep-0-curves-0 .canvas svg');
    assert.equal(await svg.locator('path[fill-opacity]').count(), 1);
    assert.equal(await svg.locator('path[stroke-width="1.3"]').count(), 2);
    const hollow = await svg.locator('circle').evaluateAll((all) => all.filter((dot) => dot.getAttribute('fill') !== dot.getAttribute('stroke')).length);
    assert.equal(hollow, 1, 'a point without an interval');
    const map = await drawn(page, 'sweep-0-map-0');
    assert.equal(await map.locator('.canvas svg').getByText('–', { exact: true }).count(), 1);
    assert.equal(await map.locator('.canvas svg path[stroke-dasharray]').count(), 0);
    await close();
  });

  test('the matrix of read and write rates is a map', async () => {
    const { page, trouble, close } = await open(made.load);
    assert.deepEqual(await everyChart(page, 'load'), ['load-0-latency', 'load-0-matrix']);
    const [load] = documentOf(made.load).loads;
    const { rows } = await tableBehind(page.locator('#load-0-matrix'));
    assert.equal(rows.length, load.matrix.writes_per_s.length);
    // Writes rise from bottom to top, as in the terminal.
    assert.equal(load.matrix.writes_per_s[0], 0);
    assert.equal(rows.at(-1)[0], '0');
    assert.equal(rows[0].length, load.matrix.reads_per_s.length + 1);
    const known = load.matrix.cells.flat().filter(({ p99_ns, shown }) => p99_ns > 0 && /\d/.test(shown));
    const [lowest, ...others] = known.sort((a, b) => a.p99_ns - b.p99_ns).map(({ shown }) => shown);
    const label = await page.locator('#load-0-matrix .canvas').getAttribute('aria-label');
    assert.ok(label.includes(` from ${lowest} to ${others.at(-1)}. `), label);
    await picture(page, 'load');
    assert.deepEqual(trouble, []);
    await close();
  });
});

describe('figures by two labels', () => {
  test('one command makes a chart of each figure, with what is promised drawn in', async () => {
    const { page, trouble, close } = await open(made.pivot);
    assert.deepEqual(await everyChart(page, 'pivot'), ['pivot-0', 'pivot-1', 'pivot-2', 'pivot-3']);
    assert.match(await page.locator('.lead').first().innerText(), /not figures of real storage/);
    const { pivots } = documentOf(made.pivot);
    const csv = pivot('--format', 'csv').trim().split('\n\n').map((part) => part.split('\n').slice(1).map((line) => line.split(',')));
    pivots.forEach((one, number) => {
      for (const [region, device, value, , , , promised] of csv[number]) {
        const cell = one.cells[one.rows.indexOf(region)][one.columns.indexOf(device)];
        assert.deepEqual([cell.value, cell.promised], [Number(value), Number(promised)], `${VALUES[number]} ${region} ${device}`);
      }
    });
    const { head, rows } = await tableBehind(page.locator('#pivot-2'));
    assert.deepEqual([head, rows.map(([name]) => name)], [['device', 'asia', 'europe', 'us'], ['pd-ssd', 'pd-standard']]);
    assert.match(rows[0][1], /1\.80k promised/);
    assert.match(rows[0][1], /^(~[\d.]+|[\d.]+\w? ±[\d.]+)/, 'known digits with the interval');
    const verdicts = await page.locator('table', { hasText: 'Measured and promised values' }).innerText();
    assert.ok(verdicts.includes('✗ less than promised') || verdicts.includes('✓ kept'), verdicts);
    assert.equal(await page.locator('table', { hasText: 'Results with these figures' }).locator('tbody tr').count(), 6);
    await picture(page, 'pivot');
    assert.deepEqual(trouble, []);
    await close();
  });

  test('limits cross bars, which are regrouped and rescaled', async () => {
    const { page, trouble, close } = await open(made.pivot);
    const panel = await drawn(page, 'pivot-2');
    assert.equal(await panel.locator('.canvas svg path.limit').count(), 6);
    const [scale, group] = await page.locator('.choices select').all();
    await group.selectOption({ label: 'region' });
    assert.deepEqual((await tableBehind(panel)).head, ['region', 'pd-ssd', 'pd-standard']);
    await scale.selectOption({ label: 'per cent of the promised value' });
    const { rows } = await tableBehind(panel);
    assert.ok(rows.flat().some((cell) => cell.includes('100 % promised')), JSON.stringify(rows));
    await everyChart(page, 'scaled');
    await picture(page, 'pivot-scaled');
    assert.deepEqual(trouble, []);
    await close();
  });

  test('measured values beside promised ones have their intervals', async () => {
    const path = altered(made.pivot, 'pivot-bounds', ({ pivots: [first] }) => {
      first.cells.flat().forEach((cell, index) => (cell.between = index === 0 ? [cell.value * 0.9, cell.value * 1.1] : null));
    });
    const { page, close } = await open(path);
    const rows = await page.locator('table', { hasText: 'Measured and promised values' }).locator('tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    const measured = rows.filter(([figure]) => figure === documentOf(path).pivots[0].figure).map((cells) => cells[3]);
    assert.match(measured[0], /^\d.* ±\d/);
    assert.ok(measured.length > 1 && measured.slice(1).every((text) => /^~\d/.test(text)), `${measured}`);
    assert.equal(await page.locator('p', { hasText: 'Thin marks are 95 % confidence intervals. ~: interval not known.' }).count(), 1);
    await close();
  });

  test('more than six bars of a group are regrouped or differ in their fill', async () => {
    const grown = (columns) =>
      altered(made.pivot, `pivot-${columns}`, (document) => {
        const [like] = document.pivots;
        const names = (start, count) => Array.from({ length: count }, (_, index) => `${start}${index}`);
        const [rows, across] = [names('row', 8), names('column', columns)];
        document.pivots = [{ ...like, rows, columns: across, cells: rows.map(() => across.map(() => like.cells[0][0])) }];
      });
    const few = await open(grown(2));
    assert.deepEqual((await tableBehind(await drawn(few.page, 'pivot-0'))).head, ['region', 'column0', 'column1']);
    await few.close();
    const { page, close } = await open(grown(8));
    const panel = await drawn(page, 'pivot-0');
    const looks = await panel.locator('.canvas svg path.bar').evaluateAll((all) => all.map((bar) => `${bar.getAttribute('fill')} ${bar.getAttribute('fill-opacity')}`));
    assert.equal(new Set(looks).size, 8, `${looks}`);
    const entries = await panel.locator('.legend button path').evaluateAll((all) => all.map((line) => `${line.getAttribute('stroke')} ${line.getAttribute('stroke-opacity')}`));
    assert.equal(new Set(entries).size, 8, `${entries}`);
    await close();
  });

  test('without scripts the page has a row for each figure', async () => {
    const { page, close } = await open(made.pivot, { javaScriptEnabled: false });
    const cells = documentOf(made.pivot).pivots.map((pivot) => pivot.cells.flat().filter((cell) => cell !== null).length);
    const rows = await page.locator('noscript table').evaluateAll((all) => all.map((table) => table.rows.length - 1));
    assert.deepEqual(rows, cells);
    await close();
  });

  test('dark, narrow and on paper', async () => {
    for (const name of ['pivot', 'sweep']) {
      const dark = await open(made[name], { colorScheme: 'dark' });
      await everyChart(dark.page, name);
      await picture(dark.page, `${name}-dark`);
      await dark.close();
      const narrow = await open(made[name], { viewport: { width: 360, height: 740 } });
      const wide = await narrow.page.evaluate(() => [...document.querySelectorAll('#page *')].filter((element) => element.getBoundingClientRect().right > 360 && !element.closest('.scroll')).map((element) => `${element.tagName} ${element.className} ${element.textContent?.slice(0, 30)}`));
      assert.ok((await narrow.page.evaluate(() => document.documentElement.scrollWidth)) <= 360, `${name}: ${wide}`);
      await narrow.close();
      const paper = await open(made[name]);
      await paper.page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
      await paper.page.emulateMedia({ media: 'print' });
      const charts = await paper.page.locator('.canvas').evaluateAll((all) => all.filter((canvas) => canvas.querySelectorAll('svg path').length > 3).length);
      assert.equal(charts, await paper.page.locator('.canvas').count(), name);
      assert.ok((await paper.page.evaluate(() => document.body.scrollWidth)) <= 1032, name);
      assert.equal(await paper.page.locator('.choices:visible').count(), 0, name);
      await picture(paper.page, `${name}-paper`);
      await paper.close();
    }
  });
});
