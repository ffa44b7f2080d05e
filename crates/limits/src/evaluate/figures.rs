//! Figures of a promise: each is the lowest of its caps.

use super::super::metric::{Metric, exact};
use super::super::promise::{Bound, Promise, PromisedFigure};
use super::Evaluation;

impl Evaluation<'_> {
    pub(super) fn promise(mut self) -> Promise {
        let figures: Vec<PromisedFigure> = self
            .metrics()
            .into_iter()
            .filter_map(|metric| self.figure(metric))
            .collect();
        // No burst exceeds its sustained figure, for example because the machine caps it.
        if figures.iter().all(|figure| figure.burst.is_none()) {
            self.bursts.clear();
        }
        let max_io_bytes = self.product.io.max_kib.map(|kib| u64::from(kib) << 10);
        self.small_io(&figures, max_io_bytes);
        Promise {
            commands: self.limits.commands(self.name, &self.query),
            product: self.name.to_owned(),
            title: self.product.title.clone(),
            query: self.query,
            figures,
            shared: self.product.shared,
            firm: self.firm,
            max_io_bytes,
            delivery: self.product.delivery,
            bursts: self.bursts,
            method: self.product.method.clone(),
            remarks: self.remarks,
            notes: self.notes,
            sources: self.sources,
        }
    }

    /// Returns the metrics with a figure: one per direction if any cap is about one direction.
    fn metrics(&self) -> Vec<Metric> {
        let known: Vec<Metric> = self
            .volume
            .iter()
            .map(|(metric, _)| *metric)
            .chain(self.around.iter().flatten().map(|(metric, _, _)| *metric))
            .collect();
        let apart = |iops: bool| {
            known
                .iter()
                .any(|metric| metric.is_iops() == iops && *metric != metric.together())
        };
        Metric::ALL
            .into_iter()
            .filter(|metric| apart(metric.is_iops()) == (*metric != metric.together()))
            .filter(|metric| known.iter().any(|of| of.applies_to(*metric)))
            .collect()
    }

    fn figure(&self, metric: Metric) -> Option<PromisedFigure> {
        let volume = self.volume.iter().filter(|(of, _)| of.applies_to(metric));
        let around: Vec<_> = self
            .around
            .iter()
            .flatten()
            .filter(|(of, _, _)| of.applies_to(metric))
            .collect();
        let mut bounds: Vec<Bound> = volume
            .map(|(_, bound)| bound.clone())
            .chain(around.iter().map(|(_, bound, _)| bound.clone()))
            .collect();
        bounds.sort_by(|a, b| a.per_s.total_cmp(&b.per_s));
        let first = bounds.first()?.clone();
        let up_to_per_s = bounds
            .iter()
            .map(|bound| bound.up_to_per_s)
            .fold(f64::INFINITY, f64::min);
        let burst = self.lowest_burst(metric, &around);
        Some(PromisedFigure {
            metric,
            per_s: first.per_s,
            up_to_per_s: (up_to_per_s > first.per_s).then_some(up_to_per_s),
            unit: first.unit,
            limited_by: first.by,
            burst: burst.filter(|burst| burst.per_s > first.per_s * 1.000_001),
            bounds,
        })
    }

    /// Returns the burst rate: the lowest of the burst rates of the volumes, machine and network.
    fn lowest_burst(
        &self,
        metric: Metric,
        around: &[&(Metric, Bound, Option<Bound>)],
    ) -> Option<Bound> {
        let smallest = |a: Bound, b: Bound| if b.per_s < a.per_s { b } else { a };
        let volume = self
            .volume
            .iter()
            .filter(|(of, _)| of.applies_to(metric))
            .map(|(_, bound)| bound.clone())
            .reduce(smallest);
        let burst = self.burst.iter().filter(|(of, _)| of.applies_to(metric));
        let volume = burst
            .map(|(_, bound)| bound.clone())
            .chain(volume)
            .reduce(|a, b| if b.per_s > a.per_s { b } else { a });
        let around = around
            .iter()
            .map(|(_, bound, burst)| burst.clone().unwrap_or_else(|| bound.clone()));
        volume.into_iter().chain(around).reduce(smallest)
    }

    /// Adds a remark if the IOPS limit keeps even the largest I/Os below the bandwidth limit.
    fn small_io(&mut self, figures: &[PromisedFigure], max_io_bytes: Option<u64>) {
        let of = |metric| figures.iter().find(|figure| figure.metric == metric);
        let (Some(iops), Some(bandwidth), Some(bytes)) =
            (of(Metric::Iops), of(Metric::Bandwidth), max_io_bytes)
        else {
            return;
        };
        let carried = iops.per_s * bytes as f64;
        if carried < bandwidth.per_s * 0.999 {
            self.remarks.push(format!(
                "{} IOPS of {} KiB, the largest I/O that counts as one, transfer {}, less than the \
                 bandwidth limit",
                exact(iops.per_s),
                bytes >> 10,
                bandwidth.unit.show(carried),
            ));
        }
    }
}

impl Metric {
    /// Returns whether a cap on this metric caps another. A cap on both directions caps each.
    pub(super) fn applies_to(self, other: Metric) -> bool {
        self == other || self == other.together()
    }
}
