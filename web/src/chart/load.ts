// Latency over offered rate, for results of `load`.

import type { Load } from '../document';
import { iops, quantity } from '../format';
import { heatMap } from './heat';
import type { Drawing, Spec } from './panel';
import { colorOf, dashOf, logarithmic, symbolOf, told, tooltip, valueAxis, xAxis } from './parts';

const LINES: { name: string; of: (point: Load['points'][number]) => number | null }[] = [
  ...[50, 95, 99, 99.9].map((percent, index) => ({
    name: `p${percent}`,
    of: (point: Load['points'][number]) => point.percentiles_ns[index] ?? null,
  })),
  { name: 'longest', of: (point) => point.max_ns },
];

export function loadSpecs(load: Load, number: number): Spec[] {
  const specs: Spec[] = [
    {
      id: `load-${number}-latency`,
      title: 'Latency over offered rate',
      hint:
        'Latency counts from the intended start of an I/O. Hollow points fell behind the ' +
        'offered rate: their latency grows as long as the load lasts.',
      draw: () => draw(load),
    },
  ];
  const { matrix } = load;
  if (matrix) {
    specs.push({
      id: `load-${number}-matrix`,
      title: '99th percentile of latency over read and write rate',
      hint:
        'Dashed cells and ~ are predicted from their neighbours, not measured; ' +
        'x fell behind the offered rate.',
      draw: () => {
        const cells = matrix.cells.flatMap((row, index) =>
          row.map((cell, column) => {
            const beyond = cell.state === 'not_reached' || cell.state === 'predicted_not_reached';
            return {
              column,
              row: index,
              value: cell.p99_ns,
              predicted: cell.state.startsWith('predicted'),
              ...(beyond ? { word: cell.state === 'not_reached' ? 'x' : '~x' } : {}),
            };
          }),
        );
        const axes = {
          columns: matrix.reads_per_s.map((rate) => iops(rate)),
          rows: matrix.writes_per_s.map((rate) => iops(rate)),
          columnTitle: 'reads/s',
          rowTitle: 'writes/s',
        };
        return heatMap(cells, axes, 'ns', '99th percentile');
      },
    });
  }
  return specs;
}

function draw(load: Load): Drawing {
  const points = [...load.points].sort((a, b) => a.offered_per_s - b.offered_per_s);
  const all = points.flatMap((point) => LINES.flatMap((line) => line.of(point) ?? []));
  const kept = points.filter((point) => point.kept_up).map((point) => point.offered_per_s);
  const most = Math.max(0, ...kept);
  return {
    summary:
      kept.length > 0
        ? `Kept up with up to ${iops(most)} I/Os per second.`
        : 'No rate was kept up with.',
    legend: LINES.map((line, index) => ({ name: line.name, color: index, dash: dashOf(index) })),
    height: 340,
    option: (theme, hidden) => ({
      grid: { left: 76, right: 24, top: 26, bottom: 52 },
      tooltip: tooltip(theme, (hits) => {
        const point = points.find((each) => each.offered_per_s === hits[0]?.value[0]);
        const lines = hits.map((hit) => ({
          color: hit.color,
          name: hit.seriesName,
          value: quantity(hit.value[1] ?? 0, 'ns'),
        }));
        return told(
          `${iops(hits[0]?.value[0] ?? 0)}/s offered, ${iops(
            point?.achieved_per_s ?? 0,
          )}/s completed`,
          lines,
        );
      }),
      xAxis: xAxis(theme, 'I/Os offered per second', {
        min: 0,
        axisLabel: {
          color: theme.muted,
          hideOverlap: true,
          formatter: (value: number) => iops(value),
        },
      }),
      yAxis: valueAxis(theme, '', 'ns', logarithmic(all)),
      series: LINES.flatMap((line, index) =>
        hidden.has(line.name)
          ? []
          : [
              {
                type: 'line',
                name: line.name,
                color: colorOf(theme, index),
                lineStyle: { width: 2, type: dashOf(index) },
                data: points.flatMap((point) => {
                  const ns = line.of(point);
                  if (ns === null) return [];
                  const color = colorOf(theme, index);
                  return [
                    {
                      value: [point.offered_per_s, ns],
                      symbol: symbolOf(index),
                      symbolSize: 7,
                      itemStyle: point.kept_up
                        ? { color }
                        : { color: theme.background, borderColor: color, borderWidth: 1.5 },
                    },
                  ];
                }),
              },
            ],
      ),
    }),
    table: () => ({
      caption: 'Latency over offered rate',
      head: ['offered/s', 'completed/s', 'kept up', ...LINES.map((line) => line.name)],
      rows: points.map((point) => [
        Math.round(point.offered_per_s),
        Math.round(point.achieved_per_s),
        point.kept_up ? 'yes' : 'no',
        ...LINES.map((line) => {
          const ns = line.of(point);
          return ns === null ? '' : quantity(ns, 'ns');
        }),
      ]),
    }),
  };
}
