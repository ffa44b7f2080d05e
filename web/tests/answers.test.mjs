// Answers of reports: the knee of a load, the winner of two targets, the verdict of a suite; as text, chart and file.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { altered, close, documentOf, drawn, iosonde, launch, open, read, report, saved, simulated, tableBehind, temporary, unfold, unfoldAll } from './browser.mjs';

const PHONE = { width: 400, height: 800 };
const WIDE = { width: 1440, height: 900 };
const TARGETS = ['sim:nvme', 'sim:sata-ssd'];
/** Texts and their ranges, which the terminal's test reads too. */
const RANGES = new URL('../../crates/report/src/probe/number_ranges.json', import.meta.url);
const made = {};

before(async () => {
  await launch();
  made.probes = simulated('probe', ...TARGETS);
  made.two = report('answers-two', made.probes);
  made.one = report('answers-one', simulated('probe', 'sim:hdd', '--quick'));
  made.knee = report('answers-knee', load('sim:net-iops-cap', '500,1k,2k,2500,3k,3500,4k,4500,6k'));
  made.low = report('answers-low', load('sim:net-iops-cap', '500,1k'));
  made.objective = report('answers-objective', load('sim:net-iops-cap', '500,1k,2k,3k,4k,4500,6k', '--slo', 'p99=3ms', '--slo', 'p99=100s'));
  made.matrix = report('answers-matrix', simulated('load', 'sim:read_us=700,write_us=700,parallel=4', '--rw', 'randrw', '--matrix', '8', '--runtime', '1'));
  made.sweep = report('answers-sweep', simulated('sweep', 'sim:sata-ssd', '--rw', 'randread,randwrite', '--bs', '4k,16k', '--iodepth', '1..128', '--runtime', '1'));
  made.single = suite('one', ['"sim:hdd"'], 'iops >= 1');
  made.suite = suite('db', ['"sim:sata-ssd"', '{ path = "sim:hdd", labels = { disk = "old" } }'], 'iops >= 1k');
});

after(close);

function load(target, rates, ...options) {
  return simulated('load', target, '--rates', rates, '--runtime', '2', ...options);
}

/** Runs a suite and returns its report. A missed expectation has an exit status of its own. */
function suite(name, targets, expectation) {
  const [file, page] = [temporary(`${name}.toml`), temporary(`${name}.html`)];
  const options = 'options = { rw = "randread", bs = "4k", size = "8m", iodepth = 4, ioengine = "libaio", time_based = 1, runtime = 1 }';
  writeFileSync(file, `targets = [${targets}]\n[[workload]]\nname = "disk"\n${options}\nexpect = ["${expectation}"]\n`);
  try {
    iosonde('run', file, '--store', temporary(`${name}.db`), '--report', page);
  } catch (error) {
    assert.match(String(error.stderr), /missed/);
  }
  return page;
}

const flowing = (text) => text.replace(/\s+/g, ' ');

/** The text and the rows of tables of a page whose scripts are off. It is as wide as the screen. */
async function withoutScripts(path) {
  const { page, close } = await open(path, { javaScriptEnabled: false, viewport: PHONE });
  const main = page.locator('noscript main');
  const text = flowing(await main.innerText());
  const rows = await main.locator('tr').allInnerTexts();
  const elements = await main.locator('img, script, iframe, a').count();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), PHONE.width);
  await close();
  return { text, rows, elements };
}

describe('knee of a load without objective', () => {
  test('knee is stated first and marked in the chart', async () => {
    const [study] = documentOf(made.knee).loads;
    assert.ok(study.knee_per_s > 0 && study.objectives.length === 0, JSON.stringify(study));
    for (const viewport of [PHONE, WIDE]) {
      const { page, trouble, close } = await open(made.knee, { viewport });
      const answer = page.locator('#summary .lead').first();
      assert.equal(flowing(await answer.innerText()), `Knee: ${study.knee}`);
      assert.ok((await answer.boundingBox()).y < 500);
      const panel = await drawn(page, 'load-0-latency');
      const mark = panel.locator('.canvas svg text.moment');
      assert.match(await mark.textContent(), /^knee: [\d.]+k$/);
      assert.ok((await panel.locator('.canvas').getAttribute('aria-label')).includes(study.knee));
      assert.deepEqual(trouble, []);
      await close();
    }
  });

  test('card has the percentile of all screens', async () => {
    const path = altered(made.knee, 'answers-load-card', ({ loads: [load] }) => load.points.forEach((point) => (point.shown[2] = '~11 ms')));
    const { page, close } = await open(path);
    const card = page.locator('.tiles > div', { hasText: 'p99 at that rate' });
    assert.equal(await card.locator('dd').evaluate((value) => value.firstChild.textContent), '~11 ms');
    assert.equal(await page.locator('.tiles + .note').innerText(), '~: interval not known.');
    await close();
  });

  test('load without a knee names the highest sustained rate', async () => {
    const [study] = documentOf(made.low).loads;
    assert.equal(study.knee_per_s, null);
    const { page, close } = await open(made.low);
    const answer = flowing(await page.locator('#summary .lead').first().innerText());
    assert.match(answer, /^Knee: not known from fewer than 3 sustained rates: p99 is .* at 1\.00k IOPS, the highest sustained rate$/);
    const panel = await drawn(page, 'load-0-latency');
    assert.equal(await panel.locator('.canvas svg text.moment').textContent(), 'highest sustained: 1.00k');
    await close();
  });
});

describe('chart of a load', () => {
  test('objective is a named line, or a note if it is beyond the scale', async () => {
    const [{ limits }] = documentOf(made.objective).loads;
    const [near, far] = ['objective p99 <= 3.00 ms', 'objective p99 <= 100 s'];
    assert.deepEqual(limits.map(({ name, beyond }) => [name, beyond]), [[near, null], [far, 'above']]);
    for (const viewport of [PHONE, WIDE]) {
      const { page, trouble, close } = await open(made.objective, { viewport });
      const panel = await drawn(page, 'load-0-latency');
      assert.deepEqual(await panel.locator('.canvas svg text.rule').allTextContents(), [near]);
      assert.equal(await panel.locator('p.note').first().innerText(), `${far}: above the scale`);
      const height = async (text) => Number(await panel.locator('.canvas svg').getByText(text, { exact: true }).getAttribute('y'));
      const [high, line, low] = [await height('10 ms'), await height(near), await height('1 ms')];
      assert.ok(high < line && line < low, `${high} ${line} ${low}`);
      assert.deepEqual(trouble, []);
      await close();
    }
    const { page, close } = await open(made.knee);
    const panel = await drawn(page, 'load-0-latency');
    assert.equal(await panel.locator('.canvas svg text.rule, p.note:visible').count(), 0);
    await close();
  });

  test('objective name without room is in the note', async () => {
    const names = ['objective p99 <= 3.00 ms', 'objective p99 <= 3.01 ms', 'objective p99 <= 3.02 ms'];
    const path = altered(made.objective, 'answers-objectives-near', ({ loads: [load] }) => {
      load.limits = names.map((name, index) => ({ percentile: 99, latency_ns: 3e6 + index * 1e4, name, beyond: null }));
    });
    const { page, trouble, close } = await open(path);
    const panel = await drawn(page, 'load-0-latency');
    assert.deepEqual(await panel.locator('.canvas svg text.rule').allTextContents(), [names[2], names[1]]);
    assert.equal(await panel.locator('p.note').first().innerText(), `${names[0]}: drawn without a name`);
    assert.deepEqual(trouble, []);
    await close();
  });

  test('interrupted and failed rates are in the table only', async () => {
    const states = ['interrupted', 'failed'];
    const path = altered(made.knee, 'answers-load-cut', ({ loads: [load] }) => {
      const sustained = load.points.filter(({ state }) => state === 'sustained');
      sustained.sort((a, b) => b.offered_per_s - a.offered_per_s);
      states.forEach((state, index) => (sustained[index].state = state));
      const behind = load.points.find(({ state }) => state === 'fell_behind');
      Object.assign(behind, { percentiles_ns: [null, null, null, null], max_ns: null });
    });
    const [{ points }] = documentOf(path).loads;
    const kept = points.filter(({ state }) => state === 'sustained');
    const most = `${(Math.max(...kept.map((point) => point.offered_per_s)) / 1000).toFixed(2)}k`;
    const { page, trouble, close } = await open(path);
    const tile = page.locator('.tiles > div', { hasText: 'highest rate kept up with' });
    assert.equal(await tile.locator('dd').evaluate((value) => value.firstChild.textContent), `${most}/s`);
    const panel = await drawn(page, 'load-0-latency');
    assert.ok((await panel.locator('.canvas').getAttribute('aria-label')).includes(`Kept up with up to ${most} I/Os`));
    const known = kept.flatMap((point) => [...point.percentiles_ns, point.max_ns]).filter((ns) => ns !== null);
    assert.equal(await panel.locator('.canvas svg circle').count(), known.length);
    const { rows } = await tableBehind(panel);
    const texts = points.filter(({ percentiles_ns: [median] }) => median !== null).map(({ shown: [median] }) => median);
    for (const median of texts) assert.ok(rows.some((row) => row[3] === median), `${median}: ${rows}`);
    for (const state of states) assert.equal(rows.filter((row) => row[2] === state && row.at(-1) !== '').length, 1, state);
    assert.deepEqual(rows.filter((row) => row[2] === 'no').map((row) => row.at(-1)), ['']);
    assert.deepEqual(trouble, []);
    await close();
  });

  test('names stand near the ends of their lines, or in a legend', async () => {
    for (const path of [made.knee, made.low, made.objective]) {
      for (const width of [900, 1440]) {
        const { page, close } = await open(path, { viewport: { width, height: 900 } });
        const panel = await drawn(page, 'load-0-latency');
        const leaders = await panel.locator('.canvas svg path.leader').evaluateAll((all) => all.map((leader) => leader.getAttribute('d').match(/^M\S+ ([\d.]+)H\S+L\S+ ([\d.]+)h2$/).slice(1).map(Number)));
        assert.equal(await panel.locator('.legend').isVisible(), leaders.length === 0, `${leaders}`);
        for (const [line, name] of leaders) assert.ok(Math.abs(name - line) <= 24, `${leaders}`);
        await close();
      }
    }
  });

  test('chart is on one page of paper', async () => {
    for (const [path, columns] of [[made.knee, 'auto'], [made.matrix, '2']]) {
      const { page, close } = await open(path);
      await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
      await page.emulateMedia({ media: 'print' });
      const breaks = await page.locator('#load-0 :is(.grid, .panel)').evaluateAll((all) => all.map((box) => getComputedStyle(box).breakInside));
      assert.ok(breaks.length > 1 && breaks.every((each) => each === 'avoid'), `${breaks}`);
      assert.equal(await page.locator('#load-0 .grid').evaluate((box) => getComputedStyle(box).columnCount), columns);
      await close();
    }
  });
});

describe('one sweep', () => {
  test('tile has the text of the best measured cell', async () => {
    const path = altered(made.sweep, 'answers-tiles', ({ sweeps: [sweep] }) => {
      sweep.curves[0].block_bytes = 64 << 10;
    });
    const expected = documentOf(path).sweeps[0].curves.map(({ block_bytes, cells }) => {
      const measured = cells.filter(({ basis }) => basis === 'measured');
      const { shown } = measured.reduce((most, each) => (each.iops.mean > most.iops.mean ? each : most));
      return block_bytes >= 64 << 10 ? shown.bandwidth : `${shown.iops} IOPS`;
    });
    assert.equal(expected.length, 4);
    const { page, trouble, close } = await open(path);
    await page.locator('.tiles').waitFor();
    const tiles = await page.locator('.tiles dd').evaluateAll((all) => all.map((tile) => [tile.previousElementSibling.textContent, tile.firstChild.textContent]));
    const values = tiles.filter(([name]) => name.endsWith(', most')).map(([, value]) => value);
    assert.deepEqual(values, expected);
    assert.deepEqual(trouble, []);
    await close();
  });
});

describe('doubts', () => {
  const value = (card) => card.locator('dd').evaluate((element) => element.firstChild.textContent);

  test('card bears the doubts of its figure', async () => {
    const path = altered(made.one, 'answers-doubts', ({ runs, studies }) => {
      const { figures: [figure] } = runs.find(({ name }) => name === 'sequential read');
      Object.assign(figure, { shape: 'falling' });
      Object.assign(figure.shown, { bandwidth: '530 MiB/s', bandwidth_half: '±150 MiB/s' });
      studies[0].unknown_maxima = [['sequential read', 'not known; the fastest was depth 1']];
    });
    const { page, trouble, close } = await open(path);
    const card = page.locator('.tiles > div', { hasText: 'sequential read' });
    assert.equal(await value(card), '530 MiB/s');
    assert.ok((await card.locator('small').innerText()).startsWith('±150 MiB/s, depth '));
    const chips = await card.locator('.chip').allInnerTexts();
    assert.ok(chips.includes('falling') && chips.includes('maximum not known'), `${chips}`);
    assert.deepEqual(trouble, []);
    await close();
  });

  test('card of a flush has its latency', async () => {
    const path = altered(made.one, 'answers-flush', ({ runs }) => {
      const flush = runs.flatMap(({ figures }) => figures).find(({ direction }) => direction === 'sync');
      Object.assign(flush.shown, { iops: '266', iops_half: '±10', percentiles: ['3.99 ms', null, null] });
    });
    const { page, close } = await open(path);
    const card = page.locator('.tiles > div', { hasText: 'flush' });
    assert.equal(await value(card), '3.99 ms');
    assert.equal(flowing(await card.locator('small').innerText()), 'p50, 266 IOPS, ±10');
    await close();
  });

  test('finding of several runs has the range of its numbers, without preparations', async () => {
    const evidence = (share) => `the hypervisor gave ${share} % of nvme0n1 away`;
    const path = altered(made.one, 'answers-ranges', ({ runs }) => {
      const [layout, ...measured] = runs;
      assert.ok(layout.preparation);
      runs.forEach((run) => (run.verdicts = []));
      [[layout, '99'], [measured[0], '26'], [measured[1], '15.7'], [measured[2], '33.8']].forEach(([run, share]) => run.verdicts.push({ kind: 'steal', evidence: evidence(share) }));
    });
    const { page, close } = await open(path);
    const finding = page.locator('.findings > li', { hasText: 'hypervisor' });
    assert.equal(await finding.count(), 1);
    const text = flowing(await finding.innerText());
    assert.ok(text.includes(evidence('15.7 to 33.8')) && text.includes('In 3 runs'), text);
    assert.match(text, /^stolen CPU time /);
    await close();
  });

  test('findings become ranges as in the terminal, but names do not', async () => {
    const cases = JSON.parse(readFileSync(RANGES, 'utf8'));
    const { page, show, close } = await open();
    for (const [number, [texts, expected]] of cases.entries()) {
      const path = altered(made.one, `answers-case-${number}`, ({ runs, studies }) => {
        runs.forEach((run) => (run.verdicts = []));
        studies.forEach((study) => (study.notes = []));
        const measured = runs.filter((run) => !run.preparation);
        texts.forEach((evidence, index) => measured[index].verdicts.push({ kind: 'steal', evidence }));
      });
      await show(path);
      const items = (await page.locator('#summary .findings > li').allInnerTexts()).map(flowing);
      const wanted = expected === null ? texts : [expected];
      assert.equal(items.length, wanted.length, `${texts}: ${items}`);
      wanted.forEach((text, index) => assert.ok(items[index].startsWith(`stolen CPU time ${text}`), `${items[index]}, not ${text}`));
    }
    await close();
  });

  test('findings of one run and notes of several results keep their texts', async () => {
    const path = altered(made.two, 'answers-folds', ({ runs, studies }) => {
      runs.forEach((run) => (run.verdicts = []));
      const [run] = runs.filter((each) => !each.preparation);
      run.verdicts = ['5', '12'].map((share) => ({ kind: 'steal', evidence: `${share} % stolen` }));
      studies.forEach((study, index) => (study.notes = [`${index + 1} pauses`]));
    });
    const { page, close } = await open(path);
    const folds = page.locator('#summary .findings > li > details');
    const titles = await folds.locator('summary').allInnerTexts();
    assert.equal(titles.length, 2, `${titles}`);
    assert.equal(titles[0], '2 times');
    assert.match(await page.locator('#summary .findings > li > small').first().innerText(), /^sim:/);
    assert.equal(titles[1], 'In 2 results');
    await folds.first().locator('summary').click();
    // Items are made once the list opens.
    await folds.first().locator('li').first().waitFor();
    const texts = await folds.first().locator('li').allInnerTexts();
    assert.deepEqual(texts.map((text) => text.split(': ').at(-1)), ['5 % stolen', '12 % stolen']);
    await close();
  });

  test('finding of one of several targets names it', async () => {
    const path = altered(made.two, 'answers-target', ({ runs }) => {
      for (const run of runs) {
        run.verdicts = run.place === TARGETS[1] ? [{ kind: 'steal', evidence: 'CPU time stolen' }] : [];
        run.failures = run.place === TARGETS[0] ? ['The device is gone.'] : [];
      }
    });
    const { page, close } = await open(path);
    const titles = await page.locator('#summary .findings > li > details > summary').allInnerTexts();
    for (const target of TARGETS) assert.ok(titles.some((title) => title.endsWith(` runs of ${target}`)), `${titles}`);
    await close();
  });

  test('point without an interval is hollow and says why', async () => {
    const path = altered(made.two, 'answers-hollow', ({ knees: [{ curves }] }) => {
      for (const { cells } of curves) {
        const [cell] = cells;
        cell.iops.error = null;
        Object.assign(cell.shown, { iops: '~66k', iops_half: null, bandwidth_half: null, doubt: '±100 % or more' });
      }
    });
    const { page, trouble, close } = await open(path, { viewport: WIDE });
    const panel = await drawn(page, 'depth-iops');
    const hollow = await panel.locator('.canvas svg circle').evaluateAll((all) => all.filter((dot) => dot.getAttribute('fill') !== dot.getAttribute('stroke')).length);
    assert.ok(hollow > 0);
    assert.match(await panel.locator('.note').innerText(), /short runs of the search.*Hollow points/);
    await panel.locator('.canvas').focus();
    await page.keyboard.press('Home');
    assert.match(flowing(await panel.locator('.tooltip').innerText()), /~66k, ±100 % or more/);
    const { rows } = await tableBehind(panel);
    assert.ok(rows[0].some((cell) => cell.endsWith(', ±100 % or more')), `${rows[0]}`);
    const large = await drawn(page, 'depth-bandwidth');
    assert.ok((await large.locator('.canvas svg path[stroke-width="1.3"]').count()) > 0, 'bandwidths have intervals');
    assert.deepEqual(trouble, []);
    await close();
  });
});

describe('two targets', () => {
  test('winner is the one of the terminal, on the first screen', async () => {
    const terminal = flowing(iosonde('probe', ...TARGETS, '--no-save'));
    const [winner] = documentOf(made.two).winners;
    const named = (first, second) => winner.sentence.replaceAll('[first]', first).replaceAll('[second]', second);
    assert.ok(terminal.includes(`winner ${named('A', 'B')}`), `${winner.sentence}: ${terminal}`);
    const { page, close } = await open(made.two);
    const shown = page.locator('.winner');
    assert.ok(flowing(await shown.innerText()).startsWith(`Winner: ${named(...TARGETS)}`));
    assert.match(winner.sentence, /times as fast; (all differences hold together|not certain)/);
    const { y, height } = await shown.boundingBox();
    assert.ok(y + height < 500);
    await shown.locator('summary').click();
    // Items are made once the list opens.
    await shown.locator('li').first().waitFor();
    const lines = await shown.locator('li').allInnerTexts();
    assert.equal(lines.length, winner.figures.length);
    const notes = (await shown.locator('details p').allInnerTexts()).map(flowing);
    assert.deepEqual(notes, winner.notes.map((note) => note.replaceAll('[first]', TARGETS[0]).replaceAll('[second]', TARGETS[1])).map(flowing));
    assert.ok(lines.every((line) => / (no difference shown|undecided)$/.test(line) || TARGETS.some((target) => line.includes(`: ${target} `))), `${lines}`);
    assert.ok(winner.sentence.includes(` ${lines.length} figures`), `${winner.sentence}: ${lines}`);
    await close();
  });

  test('highest rate is bold only above the intervals of all others', async () => {
    const { page, show, close } = await open();
    for (const [share, count, most] of [[0.01, 1, 1000], [0.3, 0, 1000], [null, 0, 1000], [null, 0, 100_000]]) {
      const path = altered(made.two, `answers-close-${share}-${most}`, ({ runs }) => {
        TARGETS.forEach((target, index) => {
          const { iops } = runs.find((run) => run.place === target && run.name === 'random read, depth 1').figures[0];
          iops.mean = index === 0 ? most : 900;
          iops.error = share === null ? null : share * iops.mean;
        });
      });
      await show(path);
      const heads = await page.locator('.compared thead th').allInnerTexts();
      const column = heads.findIndex((text) => text.startsWith('random read, depth 1'));
      assert.ok(column > 0, `${heads}`);
      assert.equal(await page.locator(`.compared tbody td:nth-child(${column + 1}) strong`).count(), count, `${most} ± ${share}`);
    }
    await close();
  });

  test('measured bars of a promise have the colour of their target', async () => {
    const path = report('answers-promised', made.probes, '--expect', 'gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8');
    const { page, close } = await open(path, { viewport: WIDE });
    const colorOf = async (id, name) => (await drawn(page, id)).locator('.legend button', { hasText: name }).first().locator('path').getAttribute('stroke');
    const places = documentOf(path).promises.map(({ place }) => place);
    assert.deepEqual(places, TARGETS);
    for (const [number, target] of TARGETS.entries()) {
      const measured = await colorOf(`promise-${number}-iops`, 'measured');
      assert.equal(measured, await colorOf('depth-iops', `${target}:`), target);
    }
    await close();
  });

  test('ratio of two rates has an interval if both rates have one', async () => {
    const cases = [
      [1000, 500, 0.01, '0.500 ±0.008'],
      [760_000, 402, 0.1, '0.000529 ±0.000075'],
      [402, 760_000, 0.1, '1890 ±270'],
      [1000, 2500, null, '~2.5'],
      [760_000, 402, null, '~0.00053'],
      [402, 760_000, null, '~1900'],
    ];
    const { page, show, close } = await open();
    for (const [number, [first, second, share, expected]] of cases.entries()) {
      const path = altered(made.two, `answers-ratio-${number}`, ({ runs }) => {
        for (const { place, figures } of runs)
          for (const rate of figures.flatMap(({ iops, bytes_per_s }) => [iops, bytes_per_s])) {
            rate.mean = place === TARGETS[0] ? first : second;
            rate.error = share === null ? null : share * rate.mean;
          }
      });
      await show(path);
      await unfold(page, 'comparison');
      const { head, rows } = await tableBehind(await drawn(page, 'comparison-0'));
      assert.equal(rows[0].at(-1), '1');
      assert.equal(rows[1].at(-1), expected);
      assert.equal(head.at(-1), `times the first${share === null ? ' (~: interval not known)' : ''}`);
    }
    await close();
  });

  test('ratio of two latencies has an interval if both latencies have one', async () => {
    const path = altered(made.two, 'answers-latencies', ({ runs }) => {
      for (const { place, figures } of runs)
        for (const figure of figures) {
          const ns = place === TARGETS[0] ? 1e6 : 2e6;
          figure.latency.mean_ns = ns;
          figure.latency.marks = [[0.5, ns], [0.01, ns]];
          figure.mean_bounds = [0.9 * ns, 1.1 * ns];
          figure.percentile_bounds = [null, [0.9 * ns, 1.05 * ns], null];
        }
    });
    for (const [measure, expected] of [['p99', '2.00 ±0.29'], ['mean', '2.00 ±0.29'], ['p50', '~2.0']]) {
      const { page, close } = await open(path);
      await unfold(page, 'comparison');
      await page.getByLabel('Compare by').selectOption(measure);
      const { head, rows } = await tableBehind(await drawn(page, 'comparison-0'));
      assert.equal(rows[1].at(-1), expected, measure);
      assert.equal(head.at(-1).includes('~: interval not known'), measure === 'p50');
      await close();
    }
  });

  test('single target has no winner, and result given twice is no third target', async () => {
    const twice = report('answers-twice', made.probes, made.probes);
    for (const [path, count] of [[made.one, 0], [twice, 1]]) {
      const { page, close } = await open(path);
      assert.equal(await page.locator('.winner').count(), count);
      await close();
    }
  });

  test('target has one colour in all charts, and names stand at the lines', async () => {
    const { page, close } = await open(made.two, { viewport: WIDE });
    await unfoldAll(page);
    const colors = new Map(TARGETS.map((target) => [target, new Set()]));
    const all = new Set();
    for (const id of await ids(page)) {
      const panel = await drawn(page, id);
      const series = await panel.locator('.legend button').evaluateAll((entries) => entries.map((entry) => ({ name: entry.textContent, color: entry.querySelector('path').getAttribute('stroke') })));
      for (const { name, color } of series) {
        all.add(color);
        const target = TARGETS.find((each) => name === each || name.startsWith(`${each}: `));
        if (target) colors.get(target).add(`${color}`);
      }
      if (id.startsWith('comparison')) {
        const bars = await panel.locator('.canvas svg path.bar').evaluateAll((found) => found.map((bar) => bar.getAttribute('fill')));
        if (bars.length === TARGETS.length) TARGETS.forEach((target, index) => colors.get(target).add(bars[index]));
      }
    }
    const found = [...colors.values()].map((some) => [...some]);
    assert.deepEqual(found.map((some) => some.length), [1, 1], JSON.stringify(found));
    assert.notEqual(found[0][0], found[1][0]);
    assert.ok(all.size <= 6, `${[...all]}`);
    assert.ok(!(await page.locator('#percentiles .legend').isVisible()), 'names stand at the lines');
    await close();
  });

  test('workload has one line style in all subjects', async () => {
    const { page, close } = await open(made.two, { viewport: WIDE });
    const styles = new Map();
    const shared = (await ids(page)).filter((id) => ['depth-iops', 'depth-latency'].includes(id));
    for (const id of shared) {
      const panel = await drawn(page, id);
      const series = await panel.locator('.legend button').evaluateAll((entries) => entries.map((entry) => ({ name: entry.textContent, dash: entry.querySelector('path').getAttribute('stroke-dasharray') })));
      for (const { name, dash } of series) {
        const target = TARGETS.find((each) => name.startsWith(`${each}: `));
        if (!target) continue;
        const workload = name.slice(target.length + 2);
        assert.equal(styles.get(workload) ?? `${dash}`, `${dash}`, `${id}: ${name}`);
        styles.set(workload, `${dash}`);
      }
    }
    assert.ok(styles.size >= 2, JSON.stringify([...styles]));
    await close();
  });

  test('chosen title of a suite leaves its name to the verdict', async () => {
    for (const title of ['July', 'Suite one']) {
      const { page, close } = await open(altered(made.single, 'answers-titled', (report) => (report.title = title)));
      assert.match(flowing(await page.locator('#verdict').innerText()), /one, sim:hdd: Passed/);
      await close();
    }
  });

  test('comparison without figures has its notes only', async () => {
    const path = altered(made.two, 'answers-notes', ({ winners: [winner] }) => Object.assign(winner, { figures: [], notes: ['Patterns differ'] }));
    const { page, close } = await open(path);
    const shown = page.locator('.winner');
    assert.equal(await shown.locator('summary').innerText(), 'Notes on the comparison');
    await shown.locator('summary').click();
    assert.equal(await shown.locator('details p').innerText(), 'Patterns differ');
    assert.equal(await shown.locator('ul').count(), 0);
    await close();
  });

  test('lines of one chart differ in colour or style', async () => {
    const curve = (like, name, bytes) => ({ ...like, values: [name], block_bytes: bytes });
    const large = ['q0', 'q1', 'q2', 'q3', 'q4', 'q5', 'q6'];
    // Line styles repeat after six patterns: the second small one is the seventh of all.
    const both = altered(made.two, 'answers-styles', ({ knees }) => {
      for (const search of knees) {
        const [like] = search.curves;
        const small = (name) => curve(like, name, 4096);
        const more = search === knees[0] ? large.slice(0, 5).map((name) => curve(like, name, 1 << 20)) : [];
        search.curves = [small('p0'), ...more, small('p1')];
      }
    });
    const alone = altered(made.two, 'answers-colours', (report) => {
      const [first] = report.knees;
      first.curves = large.map((name) => curve(first.curves[0], name, 1 << 20));
      report.knees = [first];
      for (const run of report.runs) if (run.place !== first.target) run.figures = [];
    });
    for (const [path, id, count] of [[both, 'depth-iops', 4], [alone, 'depth-bandwidth', 7]]) {
      const { page, close } = await open(path, { viewport: WIDE });
      const panel = await drawn(page, id);
      const styles = await panel.locator('.legend button path').evaluateAll((all) => all.map((path) => `${path.getAttribute('stroke')} ${path.getAttribute('stroke-dasharray')}`));
      assert.deepEqual([styles.length, new Set(styles).size], [count, count], `${styles}`);
      await close();
    }
  });

  test('load steps of a suite have names of their own', async () => {
    const path = altered(made.low, 'answers-steps', (report) => {
      const [study] = report.loads;
      report.loads = ['queries', 'queries, repetition 2'].map((step) => ({ ...study, step }));
    });
    const { page, close } = await open(path);
    const titles = await page.locator('main > section h2').allInnerTexts();
    const leads = (await page.locator('#summary .lead').allInnerTexts()).map(flowing);
    for (const name of ['queries on sim:net-iops-cap', 'queries, repetition 2 on sim:net-iops-cap']) {
      assert.ok(titles.includes(`Latency under load: ${name}`), `${titles}`);
      assert.ok(leads.some((lead) => lead.startsWith(`${name}: Knee: `)), `${leads}`);
    }
    await close();
  });

  test('lines of one target differ in their style', async () => {
    const { page, close } = await open(made.two, { viewport: WIDE });
    const panel = await drawn(page, 'depth-iops');
    const lines = await panel.locator('.canvas svg path.line').evaluateAll((all) => all.map((line) => `${line.getAttribute('stroke')} ${line.getAttribute('stroke-dasharray')}`));
    assert.ok(lines.length >= 4);
    assert.equal(new Set(lines).size, lines.length, `${lines}`);
    await close();
  });
});

describe('suite', () => {
  test('verdict comes first, failed targets before the others', async () => {
    const { page, trouble, close } = await open(made.suite);
    const first = page.locator('#summary > :nth-child(2)');
    assert.equal(await first.getAttribute('id'), 'verdict');
    const lines = (await first.locator('p').allInnerTexts()).map(flowing);
    assert.match(lines[0], /^✗ .*: Failed: 1 missed$/);
    assert.match(lines[1], /^✓ .*: Passed: 1 met$/);
    assert.equal(await page.title(), 'Suite db on sim:sata-ssd and sim:hdd');
    assert.deepEqual(trouble, []);
    await close();
  });

  test('temporary file of a suite is no title', async () => {
    const directory = temporary('of-a-suite');
    mkdirSync(directory);
    const { page, close } = await open(suite('files', [`"${directory}"`], 'iops >= 1'));
    assert.equal(await page.title(), 'Suite files');
    const titles = await page.locator('h1, h2, h3').allInnerTexts();
    assert.ok(!titles.some((title) => title.includes(directory)), `${titles}`);
    assert.match(await page.locator('#verdict').innerText(), /Passed: 1 met/);
    await close();
  });
});

describe('without scripts', () => {
  test('page of two targets has winner, bottleneck and table', async () => {
    const { text, rows } = await withoutScripts(made.two);
    const { winners, studies } = documentOf(made.two);
    assert.ok(text.includes(`winner: ${winners[0].sentence.replaceAll('[first]', TARGETS[0]).replaceAll('[second]', TARGETS[1])}`), text);
    assert.ok(studies.every(({ sentence, ceilings }) => text.includes(flowing(sentence)) && ceilings.length > 0 && ceilings.every((each) => text.includes(`Bottleneck: ${flowing(each)}`))), text);
    assert.ok(rows.length > 14);
  });

  test('page of a load has the knee and a row for each rate', async () => {
    const { text, rows } = await withoutScripts(made.knee);
    const [study] = documentOf(made.knee).loads;
    assert.ok(text.includes(`Knee: ${study.knee}`), text);
    assert.equal(rows.length, study.points.length + 1);
  });

  test('page of a sweep has a row for each cell', async () => {
    const { rows } = await withoutScripts(made.sweep);
    const cells = documentOf(made.sweep).sweeps.flatMap(({ curves }) => curves.flatMap((curve) => curve.cells));
    assert.equal(rows.length, cells.filter((cell) => cell.iops).length + 1);
  });

  test('page of a suite has the verdict', async () => {
    const { text } = await withoutScripts(made.suite);
    assert.match(text, /Suite db, sim:hdd: failed: 1 missed/);
  });
});

describe('every chart', () => {
  for (const name of ['two', 'knee', 'matrix', 'sweep', 'suite']) {
    test(`of ${name} is saved as PNG, SVG and CSV`, async () => {
      const { page, trouble, close } = await open(made[name]);
      await unfoldAll(page);
      for (const id of await ids(page)) {
        const panel = await drawn(page, id);
        const svg = (await saved(page, panel, /^SVG/)).content.toString();
        assert.ok(svg.startsWith('<svg') && svg.includes('</text>') && !/NaN|undefined/.test(svg), id);
        const png = (await saved(page, panel, /^PNG/)).content;
        assert.deepEqual([...png.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47], id);
        assert.ok(png.length > 2000, `${id}: ${png.length} bytes`);
        const csv = (await saved(page, panel, /^CSV/)).content.toString().trim().split('\n');
        assert.equal(csv.length, (await tableBehind(panel)).rows.length + 1, id);
      }
      assert.deepEqual(trouble, []);
      await close();
    });
  }
});

describe('heat maps at 400 px', () => {
  test('labels are whole', async () => {
    for (const [name, id] of [['matrix', 'load-0-matrix'], ['sweep', 'sweep-0-map-0']]) {
      const { page, close } = await open(made[name], { viewport: PHONE });
      const panel = await drawn(page, id);
      const texts = await panel.locator('.canvas svg text').allTextContents();
      assert.ok(!texts.some((text) => text.includes('…')), `${texts}`);
      const { head, rows } = await tableBehind(panel);
      for (const label of [...head.slice(1), ...rows.map(([first]) => first)]) assert.ok(texts.includes(label), `${label} is not among ${texts}`);
      for (const title of head[0].split(' \\ ')) assert.ok(texts.includes(title), `${title} is not among ${texts}`);
      await close();
    }
  });
});

describe('targets with names from outside', () => {
  const NAMES = {
    html: '</noscript></script><img src=x onerror="document.title=1"><script>document.title=1</script>',
    'right-to-left marks': 'safe\u202egnp.exe\u2066\u200f [second]',
    'much text': `begin-${'x'.repeat(10_000)}-end`,
  };
  for (const [kind, name] of Object.entries(NAMES)) {
    test(`${kind} are harmless in answers`, async () => {
      const renamed = (path, rename) => {
        const document = read(path);
        rename(document);
        const changed = temporary('answers-hostile.json');
        writeFileSync(changed, JSON.stringify(document));
        return report('answers-hostile', changed, '--title', 'stays');
      };
      const pages = [
        () => renamed(load('sim:net-iops-cap', '500,1k,2k'), (document) => (document.load.target = name)),
        () => renamed(made.probes, (document) => document.probes.forEach((probe, index) => (probe.target = `${name} ${index}`))),
      ];
      for (const make of pages) {
        const path = make();
        const { page, trouble, close } = await open(path, { viewport: PHONE });
        await unfoldAll(page);
        for (const id of await ids(page)) await drawn(page, id);
        assert.equal(await page.title(), 'stays');
        assert.equal(await page.locator('#page img, #page script').count(), 0);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), PHONE.width);
        assert.doesNotMatch(await page.locator('#page').innerText(), /[\u202a-\u202e\u2066-\u2069\u200e\u200f]/);
        assert.deepEqual(trouble, []);
        await close();
        const { text, elements } = await withoutScripts(path);
        assert.equal(elements, 0);
        assert.doesNotMatch(text, /[\u202a-\u202e\u2066-\u2069\u200e\u200f]/);
      }
    });
  }
});

async function ids(page) {
  return page.locator('figure.panel').evaluateAll((panels) => panels.map((panel) => panel.id));
}
