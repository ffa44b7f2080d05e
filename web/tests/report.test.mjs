// What a reader meets in a report: in a real browser, over results of simulated devices.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { altered, close, documentOf, drawn, files, iosonde, isRounded, launch, open, read, report, simulated, tableBehind, temporary, unfold, unfoldAll } from './browser.mjs';

const PROMISE = 'gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8';
const made = {};

before(async () => {
  await launch();
  made.probes = simulated('probe', 'sim:nvme', 'sim:sata-ssd');
  made.probe = report('probe', made.probes, '--expect', PROMISE);
  made.depth = report('depth', ...files('depth-'));
  made.mixed = report('mixed', ...files('mixed'));
  made.many = report('many', ...files('fleet-'));
  const store = temporary('history.db');
  for (const [node, begin] of [['a', 'fleet-00'], ['b', 'fleet-01']]) {
    iosonde('import', '--store', store, '--label', 'fleet=one', '--label', `node=${node}`, ...files(begin).slice(0, 5));
  }
  made.many10 = report('many10', ...files('fleet-00').slice(0, 10));
  made.spread = report('spread', '--store', store, 'fleet=one');
});

after(close);

describe('charts', () => {
  test('all are drawn, without errors and without a network', async () => {
    for (const name of ['probe', 'depth', 'mixed']) {
      const { page, trouble, close } = await open(made[name]);
      await unfoldAll(page);
      const ids = await page.locator('figure.panel').evaluateAll((panels) => panels.map((panel) => panel.id));
      assert.equal(new Set(ids).size, ids.length, `${name}: ${ids}`);
      assert.ok(ids.length >= 3, `${name}: ${ids}`);
      for (const id of ids) {
        const panel = await drawn(page, id);
        const paths = await panel.locator('.canvas svg path').evaluateAll((all) => all.filter((path) => (path.getAttribute('d') ?? '').length > 10).length);
        assert.ok(paths > 3, `${name} ${id}: ${paths} paths`);
        assert.equal(await panel.getByText(/NaN|undefined|Infinity/).count(), 0, `${name} ${id}`);
      }
      assert.deepEqual(trouble, [], name);
      await close();
    }
  });

  test('the sections that results call for are there, and no others', async () => {
    const sections = async (name) => {
      const { page, close } = await open(made[name]);
      const found = await page.locator('main > section').evaluateAll((all) => all.map((section) => section.id));
      await close();
      return found;
    };
    assert.deepEqual(await sections('probe'), ['summary', 'charts', 'promise', 'figures', 'knees', 'comparison', 'conditions', 'plans', 'runs']);
    assert.deepEqual(await sections('depth'), ['summary', 'charts', 'figures', 'comparison', 'conditions', 'plans', 'runs']);
    assert.deepEqual(await sections('mixed'), ['summary', 'charts', 'figures', 'conditions', 'plans', 'runs']);
  });

  test('names stand at the lines, or in a legend that hides and shows', async () => {
    const wide = await open(made.mixed);
    const chart = await drawn(wide.page, 'percentiles');
    assert.ok(!(await chart.locator('.legend').isVisible()));
    assert.equal(await chart.locator('.canvas svg text', { hasText: /oltp · (read|write)/ }).count(), 2);
    await wide.close();
    const { page, close } = await open(made.probe, { viewport: { width: 400, height: 800 } });
    const panel = await drawn(page, 'percentiles');
    const curves = panel.locator('.canvas svg path.line');
    const lines = () => settled(page, curves);
    const all = await lines();
    const entry = panel.locator('.legend button').first();
    await entry.click();
    assert.equal(await entry.getAttribute('aria-pressed'), 'false');
    assert.equal(await lines(), all - 1);
    await entry.click();
    assert.equal(await lines(), all);
    await close();
  });

  test('ticking a row draws it', async () => {
    const { page, close } = await open(made.probe);
    await unfold(page, 'figures');
    const panel = await drawn(page, 'selected');
    const before = await panel.locator('.legend button').count();
    const box = page.locator('.headline input:not([checked])').first();
    const name = (await box.getAttribute('aria-label')).replace('Draw ', '');
    await box.check();
    assert.equal(await panel.locator('.legend button').count(), before + 1);
    assert.equal(await panel.locator('.legend').getByRole('button', { name, exact: true }).count(), 1);
    await close();
  });
});

describe('figures', () => {
  test('the table of figures says what the probe said', async () => {
    const { page, close } = await open(made.probe);
    await unfold(page, 'figures');
    const rows = await page.locator('.headline tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.innerText)));
    const figures = documentOf(made.probe).runs.flatMap((run) => run.figures);
    // `~3.1k` is 3100.
    const number = (text) => parseFloat(text.replace('~', '')) * (text.endsWith('k') ? 1e3 : text.endsWith('M') ? 1e6 : 1);
    for (const probe of read(made.probes).probes) {
      const { sentence } = documentOf(made.probe).studies.find((study) => study.target === probe.target);
      assert.ok(sentence.startsWith(`This is ${probe.classification.device}`), sentence);
      assert.ok((await page.locator('.lead').allInnerTexts()).some((text) => text.includes(sentence)));
      const cardOf = (name) => documentOf(made.probe).runs.find((run) => run.place === probe.target && run.name === name).figures[0].shown;
      const onCards = [`${cardOf('random read').iops} random reads/s`, cardOf('sequential read').bandwidth];
      assert.ok(onCards.some((text) => sentence.includes(text)), `${sentence}: ${onCards}`);
      for (const figure of probe.figures) {
        const place = `${probe.target}: `;
        const { shown, shape } = figures.find((each) => each.iops.mean === figure.iops.mean);
        assert.ok(Math.abs(number(shown.iops) / figure.iops.mean - 1) < 0.06, `${shown.iops}: ${figure.iops.mean}`);
        const row = rows.find((cells) => cells[1].startsWith(place) && cells[2].startsWith(shown.iops) && cells[1].includes(`depth ${figure.iodepth}`));
        assert.ok(row, `${place}${figure.phase}: ${shown.iops}`);
        if (figure.iops.error !== null && figure.iops.error > 0.001 * figure.iops.mean) {
          assert.ok(row[2].includes(shown.iops_half), row[2]);
        }
        const courses = figure.settled === null ? ['short'] : figure.settled ? ['steady', 'noisy'] : ['drifting', 'falling', 'rising'];
        assert.ok(courses.includes(shape) && row.at(-1).includes(shape), `${shape}: ${row.at(-1)}`);
      }
    }
    await close();
  });

  test('each row links to the fio command that repeats it', async () => {
    const { page, trouble, close } = await open(made.probe);
    await unfold(page, 'figures');
    const links = page.locator('.headline tbody tr a', { hasText: 'fio command' });
    const addresses = await links.evaluateAll((all) => all.map((link) => link.getAttribute('href')));
    assert.equal(addresses.length, await page.locator('.headline tbody tr').count());
    const { runs } = documentOf(made.probe);
    const measured = runs.filter((run) => !run.preparation);
    assert.deepEqual(new Set(addresses), new Set(measured.map(({ plan }) => `#plan-${plan}`)));
    const { plan, place } = measured[0];
    await page.locator(`.headline tbody a[href="#plan-${plan}"]`).first().click();
    const text = page.locator(`#plan-${plan} pre`).first();
    await text.waitFor();
    const job = await text.textContent();
    for (const option of ['ioengine=sim', `sim=${place.replace('sim:', '')}`, 'rw=', 'bs=', 'iodepth=', 'size=']) assert.ok(job.includes(`\n${option}`), `${option}: ${job}`);
    const path = temporary('repeat.fio');
    writeFileSync(path, job);
    // The program reads all options of the job file.
    iosonde('fio', '--parse-only', path);
    assert.deepEqual(trouble, []);
    await close();
  });

  test('promised stands beside measured, with a verdict', async () => {
    const { page, close } = await open(made.probe);
    const [promise] = documentOf(made.probe).promises;
    const text = await page.locator('#promise').innerText();
    for (const row of promise.rows) assert.ok(text.includes(row.what) && text.includes(row.verdict), row.what);
    assert.ok(text.includes(promise.product) && text.includes(promise.source.slice(0, 60)), text);
    await close();
  });

  test('promised limits are lines over depth and over time', async () => {
    const { page, close } = await open(made.probe);
    const { rows, place } = documentOf(made.probe).promises[0];
    const promised = rows.find((row) => row.what === 'read IOPS');
    const said = `Promised read IOPS: ${words(promised.promised)}`;
    for (const id of ['depth-iops', 'timeline']) {
      const panel = await drawn(page, id);
      const select = panel.locator('select');
      if ((await select.count()) > 0) await select.selectOption({ label: `${place}: random read` });
      assert.ok((await panel.locator('.canvas').getAttribute('aria-label')).includes(said), id);
      const lines = panel.locator('.canvas svg text', { hasText: 'promised' });
      // What is out of all proportion is only said.
      const shown = await settled(page, lines);
      const near = rows.filter((row) => row.what === 'read IOPS' || (id === 'depth-iops' && row.what.endsWith('IOPS'))).some((row) => row.promised <= 4 * row.measured.mean);
      assert.equal(shown > 0, near, `${id}: ${shown}`);
    }
    await close();
  });

  test('limits are named from the highest to the lowest', async () => {
    const path = altered(made.probe, 'limits-order', ({ promises: [promise] }) => {
      const like = promise.rows.find((row) => row.what === 'read IOPS');
      promise.rows = [like.promised, 3 * like.promised, 2 * like.promised].map((promised) => ({ ...like, promised }));
    });
    const { page, close } = await open(path);
    const label = await (await drawn(page, 'depth-iops')).locator('.canvas').getAttribute('aria-label');
    const { promised } = documentOf(made.probe).promises[0].rows.find((row) => row.what === 'read IOPS');
    const at = [3, 2, 1].map((times) => label.indexOf(`Promised read IOPS: ${words(times * promised)}.`));
    assert.ok(at[0] > 0 && at[0] < at[1] && at[1] < at[2], `${at}: ${label}`);
    await close();
  });

  test('the spread of a label is shown within a machine and between machines', async () => {
    const { page, close } = await open(made.spread);
    const text = await page.locator('#spread').innerText();
    assert.ok(text.includes('fleet=one: 10 runs on 2 machines'), text);
    const [{ rows }] = documentOf(made.spread).spreads;
    const cells = await page.locator('#spread tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.innerText)));
    assert.equal(cells.length, rows.length);
    assert.equal(cells[0][1], rows[0].mean, 'the mean has its known digits');
    assert.deepEqual(cells[0].slice(2), ['10', '2', `${rows[0].within_percent.toFixed(1)} %`, `${rows[0].between_percent.toFixed(1)} %`]);
    await close();
  });

  test('the table can be sorted', async () => {
    const { page, close } = await open(made.depth);
    await unfold(page, 'figures');
    const head = page.locator('.headline thead th', { hasText: 'IOPS' });
    await head.getByRole('button').click();
    assert.equal(await head.getAttribute('aria-sort'), 'descending');
    const first = await page.locator('.headline tbody tr').first().innerText();
    const figures = documentOf(made.depth).runs.map((run) => run.figures[0]);
    const best = figures.reduce((most, each) => (each.iops.mean > most.iops.mean ? each : most));
    assert.ok(first.includes(best.shown.iops), first);
    await close();
  });
});

describe('tables behind charts', () => {
  test('percentiles are those of the histogram in the result', async () => {
    const { page, close } = await open(made.mixed);
    const { head, rows } = await tableBehind(await drawn(page, 'percentiles'));
    const [result] = files('mixed').map(read);
    for (const [direction, column] of [['read', 1], ['write', 2]]) {
      assert.ok(head[column].endsWith(direction));
      const { lat, clat } = result.workers[0].directions[direction];
      const buckets = (lat.histogram ?? clat.histogram).toSorted((a, b) => a[0] - b[0]);
      for (const percent of [50, 90, 99, 99.9, 99.99]) {
        const row = rows.find(([name]) => name === `${percent} %`);
        assert.equal(Number(row[column]), percentile(buckets, percent), `${direction} ${percent}`);
      }
    }
    await close();
  });

  test('counts of the histogram add up to the I/Os of the result', async () => {
    const { page, close } = await open(made.mixed);
    await unfold(page, 'figures');
    const { rows } = await tableBehind(await drawn(page, 'histogram'));
    const [result] = files('mixed').map(read);
    const sum = (column) => rows.reduce((total, row) => total + Number(row[column]), 0);
    assert.equal(sum(2), result.workers[0].directions.read.total_ios);
    assert.equal(sum(3), result.workers[0].directions.write.total_ios);
    await close();
  });

  test('the series is that of the result', async () => {
    const [file] = files('depth-sata-ssd-016');
    const path = report('one', file);
    const { page, close } = await open(path);
    const { head, rows } = await tableBehind(await drawn(page, 'timeline'));
    const { intervals } = read(file);
    assert.equal(rows.length, intervals.length);
    const column = head.findIndex((title) => title.startsWith('IOPS read'));
    intervals.forEach((interval, index) => {
      const rate = (interval.directions.read.ios * 1e9) / interval.length_ns;
      assert.ok(Math.abs(Number(rows[index][column]) / rate - 1) < 1e-4, `${index}: ${rows[index][column]}, not ${rate}`);
    });
    await close();
  });

  test('what a probe searched is drawn over depth, and said in a sentence', async () => {
    const [knees] = documentOf(made.probe).knees;
    const { page, close } = await open(made.probe);
    const { head, rows } = await tableBehind(await drawn(page, 'depth-iops'));
    const column = head.indexOf(`${knees.target}: random read`);
    const [random] = knees.curves;
    for (const cell of random.cells) {
      const row = rows.find(([depth]) => Number(depth) === cell.iodepth);
      assert.ok(isRounded(row[column], cell.iops.mean), `${cell.iodepth}: ${row[column]}`);
    }
    await unfold(page, 'knees');
    const said = await page.locator('#knees .findings').innerText();
    for (const { sentence } of knees.curves.filter((curve) => curve.sentence)) assert.ok(said.includes(sentence.replaceAll('+-', '±')), sentence);
    await close();
  });

  test('rates over depth are those of the results', async () => {
    const { page, close } = await open(made.depth);
    const { head, rows } = await tableBehind(await drawn(page, 'depth-iops'));
    assert.deepEqual(rows.map(([depth]) => Number(depth)), [1, 2, 4, 8, 16, 32, 64, 128]);
    for (const file of files('depth-')) {
      const result = read(file);
      const { read: stats } = result.workers[0].directions;
      const column = head.findIndex((title) => title.includes(result.plan.jobs[0].io.sim));
      const row = rows.find(([depth]) => Number(depth) === result.plan.jobs[0].io.iodepth);
      assert.ok(isRounded(row[column], (stats.total_ios * 1e9) / stats.runtime_ns), `${file}: ${row[column]}`);
    }
    await close();
  });
});

test('what the machine did stands beside what the run did', async () => {
  const directory = temporary('real');
  mkdirSync(directory);
  const result = temporary('real.json');
  const store = temporary('real.db');
  iosonde('--store', store, 'fio', '--name=real', '--rw=randread', '--bs=4k', '--size=8m', '--runtime=3', '--time_based', `--directory=${directory}`);
  const [id] = iosonde('list', '--store', store, '--format', 'csv').split('\n')[1].split(',');
  writeFileSync(result, iosonde('export', '--store', store, id));
  const { series } = read(result);
  const { page, trouble, close } = await open(report('real', result));
  const panel = await drawn(page, 'devices');
  const { head, rows } = await tableBehind(panel);
  const column = head.findIndex((title) => title.startsWith('machine CPUs user'));
  assert.ok(column > 0, head);
  const users = rows.map((row) => row[column]).filter((cell) => cell !== '');
  assert.deepEqual(users.map(Number), series.slices.filter((slice) => slice.cpu).map((slice) => Number(slice.cpu.user.toPrecision(5))));
  const devices = Object.keys(series.slices[0]?.devices ?? {});
  assert.ok(devices.length === 0 || devices.some((device) => head.includes(`${device} busy %util (%)`)), `${devices}: ${head}`);
  assert.deepEqual(trouble, []);
  await close();
});

describe('keyboard', () => {
  test('everything that can be clicked can be reached with Tab', async () => {
    const { page, close } = await open(made.mixed);
    await drawn(page, 'timeline');
    await page.evaluate(() => {
      window.scrollTo(0, 0);
      document.activeElement?.blur();
    });
    const wanted = await page.locator('a[href], button, input, select, summary, .canvas').evaluateAll((all) => all.filter((element) => element.checkVisibility()).length);
    const seen = new Set();
    let first;
    for (let presses = 0; presses < wanted * 2 + 20; presses += 1) {
      await page.keyboard.press('Tab');
      const id = await page.evaluate(() => {
        const element = document.activeElement;
        if (!element || element === document.body) return null;
        element.dataset.tested ??= String(Math.random());
        const { outlineStyle } = getComputedStyle(element);
        return element.matches('a[href], button, input, select, summary, .canvas') ? `${element.dataset.tested} ${outlineStyle} ${element.className}` : 'other';
      });
      if (id === null) break;
      if (id === 'other') continue;
      assert.ok(!id.includes(' none '), `no focus is shown on ${id}`);
      first ??= id;
      seen.add(id.split(' ')[0]);
    }
    assert.ok(first.endsWith('skip'), first);
    assert.equal(seen.size, wanted);
    await close();
  });

  test('arrow keys step through a chart and say what is there', async () => {
    const { page, close } = await open(made.mixed);
    const panel = await drawn(page, 'percentiles');
    await panel.locator('.canvas').focus();
    const spoken = () => panel.locator('[aria-live]').innerText();
    await page.keyboard.press('Home');
    assert.match(await spoken(), /percentile 0 %/);
    for (let step = 0; step < 5; step += 1) await page.keyboard.press('ArrowRight');
    const text = await spoken();
    assert.match(text, /percentile 50 %.*µs.*µs/);
    assert.ok(await panel.locator('.tooltip').isVisible());
    await close();
  });

  test('charts have a name and a summary', async () => {
    const { page, close } = await open(made.probe);
    for (const label of await page.locator('.canvas').evaluateAll((all) => all.map((canvas) => canvas.getAttribute('aria-label')))) {
      assert.ok(label.length > 40, label);
    }
    await close();
  });
});

describe('looks', () => {
  test('text stands out from its background in both themes', async () => {
    for (const colorScheme of ['light', 'dark']) {
      const { page, close } = await open(made.probe, { colorScheme });
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
      await drawn(page, 'percentiles');
      const poor = await page.evaluate(contrasts);
      assert.deepEqual(poor, [], colorScheme);
      await close();
    }
  });

  test('the reader may choose the theme', async () => {
    const { page, close } = await open(made.probe, { colorScheme: 'dark' });
    const panel = await drawn(page, 'percentiles');
    const color = () => panel.locator('.canvas svg path[stroke-width="2"]').first().getAttribute('stroke');
    const dark = await color();
    await page.locator('#theme').click();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'light');
    assert.notEqual(await color(), dark, 'charts change too');
    await page.reload();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'light', 'and it is remembered');
    await close();
  });

  test('a narrow screen needs no sideways scrolling', async () => {
    for (const name of ['probe', 'depth', 'many']) {
      const { page, close } = await open(made[name], { viewport: { width: 360, height: 740 } });
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360, name);
      await close();
    }
  });

  test('on a narrow screen bars keep most of the width, and their names differ', async () => {
    const { page, close } = await open(made.many10, { viewport: { width: 360, height: 740 } });
    await unfold(page, 'comparison');
    const panel = await drawn(page, 'comparison-0');
    const boxes = await panel.locator('.canvas svg text').evaluateAll((all) => all.map((text) => ({ text: text.textContent, right: text.getBoundingClientRect().right })));
    const names = boxes.filter((box) => box.text.startsWith('machine-') || box.text.includes('…'));
    assert.equal(new Set(names.map((box) => box.text)).size, 10, JSON.stringify(boxes));
    const frame = await panel.locator('.canvas').evaluate((canvas) => canvas.getBoundingClientRect());
    for (const { text, right } of names) assert.ok(right < frame.left + 0.5 * frame.width, `${text}: ${right}`);
    await close();
  });

  test('on paper charts are as wide as their place', async () => {
    for (const width of [1280, 400]) {
      const { page, close } = await open(made.probe, { viewport: { width, height: 800 } });
      await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
      await page.emulateMedia({ media: 'print' });
      const wrong = await page.locator('.canvas').evaluateAll((all) => all.filter((canvas) => Math.abs(canvas.clientWidth - canvas.querySelector('svg').clientWidth) > 1).map((canvas) => canvas.parentElement.id));
      assert.deepEqual(wrong, []);
      assert.ok((await page.evaluate(() => document.body.scrollWidth)) <= 1032);
      await close();
    }
  });

  test('on paper all charts are drawn, in light colours', async () => {
    const { page, trouble, close } = await open(made.probe, { colorScheme: 'dark' });
    await page.evaluate(() => {
      window.addEventListener('beforeprint', () => {
        const charts = [...document.querySelectorAll('.canvas')];
        window.printed = {
          theme: document.documentElement.dataset.theme,
          charts: charts.length,
          drawn: charts.filter((chart) => chart.querySelectorAll('svg path').length > 3).length,
          widest: Math.max(...charts.map((chart) => chart.querySelector('svg')?.clientWidth ?? 0)),
        };
      });
    });
    const pdf = await page.pdf({ preferCSSPageSize: true });
    const printed = await page.evaluate(() => window.printed);
    assert.equal(printed.theme, 'light');
    assert.equal(printed.drawn, printed.charts);
    assert.ok(printed.widest <= 1032, `${printed.widest} px are wider than the paper`);
    assert.ok(pdf.length > 50_000);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark', 'back on the screen');
    assert.deepEqual(trouble, []);
    await close();
  });
});

test('500 runs open at once: what is out of sight is drawn later', async (context) => {
  const started = performance.now();
  const { page, trouble, close } = await open(made.many);
  await page.locator('#percentiles .canvas svg path').first().waitFor({ state: 'attached' });
  const ms = performance.now() - started;
  context.diagnostic(`500 runs: opened and drawn after ${ms.toFixed(0)} ms`);
  assert.equal(await page.locator('#histogram').count(), 0);
  await unfold(page, 'figures');
  assert.equal(await page.locator('.headline tbody tr').count(), 500);
  assert.equal(await page.locator('#histogram .canvas svg').count(), 0);
  assert.ok(readFileSync(made.many).length < 8 << 20);
  if (process.env.IOSONDE_TEST_FULL === 'yes') assert.ok(ms < 2000, `${ms} ms`);
  await page.getByLabel('Filter').fill('seed=49');
  assert.equal(await page.locator('.headline tbody tr:visible').count(), 11, '49 and 490 to 499');
  assert.deepEqual(trouble, []);
  await close();
});

test('first chart of a probe is drawn in under 300 ms', async (context) => {
  const isFull = process.env.IOSONDE_TEST_FULL === 'yes';
  const { page, trouble, close } = await open(made.probe);
  await page.addInitScript(() => {
    const poll = () => {
      if (document.querySelector('.canvas svg path')) window.firstChartMs = performance.now();
      else requestAnimationFrame(poll);
    };
    requestAnimationFrame(poll);
  });
  const times = [];
  for (let load = 0; load < (isFull ? 7 : 1); load += 1) {
    await page.reload();
    const found = await page.waitForFunction(() => window.firstChartMs);
    times.push(await found.jsonValue());
  }
  times.sort((a, b) => a - b);
  const median = times[Math.floor(times.length / 2)];
  context.diagnostic(`first chart of a probe: ${times.map((ms) => ms.toFixed(0)).join(', ')} ms`);
  if (isFull) assert.ok(median < 300, `${median} ms`);
  assert.deepEqual(trouble, []);
  await close();
});

test('the built page carries no address to load from', () => {
  const page = readFileSync(new URL('../dist/report.html', import.meta.url), 'utf8');
  assert.ok(page.slice(0, 1024).includes('<meta charset="utf-8">'), 'browsers look no further');
  assert.ok(page.length < 120_000, `${page.length} bytes in each report`);
  assert.doesNotMatch(page, /<(script|link|img|iframe)[^>]+(src|href)="(?!data:)/);
  assert.match(execFileSync(process.env.IOSONDE, ['report', '--help'], { encoding: 'utf8' }), /--output/);
});

/** How many there are when the next frame has been drawn. */
async function settled(page, locator) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return locator.count();
}

/** Three significant digits with k, M: as the page writes rates. */
function words(perSecond) {
  if (perSecond < 999.5) return perSecond.toFixed(perSecond < 10 && !Number.isInteger(perSecond) ? 1 : 0);
  const [scaled, unit] = perSecond < 999_500 ? [perSecond / 1e3, 'k'] : [perSecond / 1e6, 'M'];
  const digits = scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2;
  return scaled.toFixed(digits) + unit;
}

/** As the result crate defines it: the middle of the bucket in which the running count first reaches the share. */
function percentile(buckets, percent) {
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  let seen = 0;
  for (const [index, count] of buckets) {
    seen += count;
    if (seen >= (percent / 100) * total - 1e-6) {
      if (index < 256) return index;
      const width = 2 ** ((index >> 7) - 1);
      return (128 + (index & 127)) * width + Math.floor(width / 2);
    }
  }
  return undefined;
}

/** Runs in the page: texts whose contrast is below 4.5 to 1. */
function contrasts() {
  const parse = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => {
    const linear = [r, g, b].map((channel) => (channel / 255 <= 0.03928 ? channel / 255 / 12.92 : ((channel / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const poor = new Set();
  for (const element of document.querySelectorAll('#page *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim() !== '');
    if (!own || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(parse(element instanceof SVGElement ? style.fill : style.color)), luminance(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.add(`${element.tagName} ${element.textContent.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return [...poor];
}
