//! Evaluation of a query: collects all caps of the volume and the machine, and takes the lowest.

mod figures;
mod machine_caps;
mod machine_products;

use super::Limits;
use super::disks;
use super::error::LimitsError;
use super::limits_file::{Amount, FigureOrigin, LimitRow, Product, ProvisionRange};
use super::metric::{Metric, VendorUnit, exact};
use super::promise::{Bound, BurstLength, Limiter, LimitsSource, Promise};
use super::queried_machine::QueriedMachine;
use super::query::{ChosenBandwidth, Query};
use super::term::{Decision, Term, TermInputs};
use super::types;

impl Limits {
    /// Returns the published limits for the volume and machine of a query.
    pub fn evaluate(&self, query: &Query) -> Result<Promise, LimitsError> {
        let product = self.edition(query)?;
        let mut evaluation = Evaluation::new(self, product, query)?;
        evaluation.volumes()?;
        evaluation.provisioned()?;
        evaluation.volume_caps()?;
        evaluation.volume_burst();
        evaluation.machine_caps()?;
        Ok(evaluation.promise())
    }
}

/// State of an evaluation.
struct Evaluation<'a> {
    limits: &'a Limits,
    product: &'a Product,
    name: &'a str,
    query: Query,
    machine: Option<QueriedMachine>,
    given: TermInputs,
    /// Caps of the volumes.
    volume: Vec<(Metric, Bound)>,
    /// Burst figures of the volumes.
    burst: Vec<(Metric, Bound)>,
    /// Caps and burst figures of the machine, and of its network: one list for each table.
    around: Vec<Vec<(Metric, Bound, Option<Bound>)>>,
    bursts: Vec<BurstLength>,
    firm: bool,
    remarks: Vec<String>,
    notes: Vec<String>,
    sources: Vec<LimitsSource>,
}

impl<'a> Evaluation<'a> {
    fn new(
        limits: &'a Limits,
        product: &'a Product,
        query: &Query,
    ) -> Result<Evaluation<'a>, LimitsError> {
        let name = product.name.get_ref().as_str();
        let mut query = query.clone();
        query.product = name.to_owned();
        let mut remarks = Vec::new();
        if let (None, Some(vcpus)) = (query.vcpus, product.machine.assumed_vcpus) {
            let vcpus_in_query =
                QueriedMachine::from_query(&query)?.and_then(|machine| machine.vcpus);
            if vcpus_in_query.is_none() {
                query.vcpus = Some(vcpus);
                query.machine.get_or_insert_with(|| "any".to_owned());
                remarks.push(format!(
                    "assuming a machine with {vcpus} vCPU; machines with more vCPUs may have \
                     higher limits"
                ));
            }
        }
        let machine = QueriedMachine::from_query(&query)?;
        if let Some(machine) = &machine {
            types::check(limits, machine, name)?;
        }
        let mut notes = product.notes.clone();
        notes.extend(product.io.note.clone());
        Ok(Evaluation {
            limits,
            product,
            name,
            machine,
            query,
            given: TermInputs::default(),
            volume: Vec::new(),
            burst: Vec::new(),
            around: Vec::new(),
            bursts: Vec::new(),
            firm: true,
            remarks,
            notes,
            sources: vec![source(&product.title, &product.origin)],
        })
    }

    /// Checks size and number of the volumes against the product and the machine.
    fn volumes(&mut self) -> Result<(), LimitsError> {
        let machine = self.machine.as_ref();
        let found = disks::volumes(self.limits, self.product, &self.query, machine)?;
        self.remarks.extend(found.remarks);
        self.sources.extend(
            found
                .origin
                .map(|origin| source("numbers of disks", origin)),
        );
        self.query.size_gib = found.size_gib.or(self.query.size_gib);
        if let Some(disks) = found.disks {
            self.query.disks = Some(disks);
            self.given.disks = f64::from(disks);
        }
        let size_gib = found.size_gib.unwrap_or(0.0);
        self.given.size_gib = if self.product.pooled {
            size_gib * self.given.disks
        } else {
            size_gib
        };
        Ok(())
    }

    /// Adds the provisioned amounts, and checks them against the range that the size allows.
    fn provisioned(&mut self) -> Result<(), LimitsError> {
        let provision = &self.product.provision;
        if let Some(choice) = &provision.iops {
            let value = self.chosen(choice, self.query.iops, VendorUnit::Iops, "iops")?;
            self.given.iops = value;
            self.query.iops = Some(value);
            self.cap(
                Metric::Iops,
                VendorUnit::Iops,
                value,
                Limiter::ProvisionedIops,
            );
        } else if self.query.iops.is_some() {
            return Err(self.not_chosen("number of IOPS"));
        }
        let (choice, unit) = match (&provision.mib_per_s, &provision.mb_per_s) {
            (Some(choice), _) => (choice, VendorUnit::MibPerS),
            (None, Some(choice)) => (choice, VendorUnit::MbPerS),
            (None, None) if self.query.bandwidth.is_some() => {
                return Err(self.not_chosen("throughput"));
            }
            (None, None) => return Ok(()),
        };
        let wanted = self.query.bandwidth.map(|bandwidth| match bandwidth {
            ChosenBandwidth::BytesPerS(bytes) => bytes / unit.factor(),
            ChosenBandwidth::InVendorUnit(number) => number,
        });
        let value = self.chosen(choice, wanted, unit, "throughput")?;
        self.given.bytes_per_s = value * unit.factor();
        self.query.bandwidth = Some(ChosenBandwidth::BytesPerS(self.given.bytes_per_s));
        self.cap(
            Metric::Bandwidth,
            unit,
            value,
            Limiter::ProvisionedBandwidth,
        );
        Ok(())
    }

    fn not_chosen(&self, what: &'static str) -> LimitsError {
        LimitsError::NotChosen {
            product: self.name.to_owned(),
            what,
        }
    }

    fn chosen(
        &self,
        choice: &ProvisionRange,
        wanted: Option<f64>,
        unit: VendorUnit,
        parameter: &'static str,
    ) -> Result<f64, LimitsError> {
        let min = choice.min.value(&self.given).value;
        let max = choice.max.value(&self.given).value;
        let show = |value: f64| unit.show(value * unit.factor());
        let mut offered = format!("{} to {}", show(min), show(max));
        if unit == VendorUnit::Iops {
            offered.push_str(" IOPS");
        }
        if self.given.size_gib > 0.0 {
            offered.push_str(&format!(" with {} GiB", exact(self.given.size_gib)));
        }
        let Some(value) = wanted.or(choice.included) else {
            return Err(LimitsError::Missing {
                product: self.name.to_owned(),
                parameter,
                why: format!("the customer chooses a value of {offered}"),
            });
        };
        // The included amount may exceed the range of a choice. A chosen amount may not.
        if wanted.is_some() && !(min..=max).contains(&value) {
            let what = match unit {
                VendorUnit::Iops => format!("{} IOPS", exact(value)),
                _ => show(value),
            };
            return Err(LimitsError::OutOfRange {
                product: self.name.to_owned(),
                what,
                offered,
            });
        }
        Ok(value)
    }

    /// Adds a cap of each volume, in the unit of the vendor.
    fn cap(&mut self, metric: Metric, unit: VendorUnit, value: f64, by: Limiter) {
        let per_s = value * unit.factor() * self.volume_factor();
        self.volume.push((
            metric,
            Bound {
                by,
                per_s,
                up_to_per_s: per_s,
                unit,
            },
        ));
    }

    /// Returns the factor from the figure of one volume to the figure of all.
    fn volume_factor(&self) -> f64 {
        if self.product.pooled {
            1.0
        } else {
            self.given.disks.max(1.0)
        }
    }

    fn bound(&self, term: &Term, unit: VendorUnit, label: &Limiter, volume_factor: f64) -> Bound {
        let value = term.value(&self.given);
        let by = match (label, value.decided_by) {
            (Limiter::Type, Decision::Size) => Limiter::Size,
            (Limiter::Type, Decision::Disks) => Limiter::Disks(self.given.disks as u32),
            (Limiter::Type, Decision::Iops) => Limiter::ProvisionedIops,
            (Limiter::Type, Decision::Bandwidth) => Limiter::ProvisionedBandwidth,
            (Limiter::Type, Decision::Minimum) => Limiter::TypeMinimum,
            (Limiter::Type, Decision::Maximum) => Limiter::TypeMaximum,
            (label, _) => label.clone(),
        };
        Bound {
            by,
            per_s: value.value * unit.factor() * volume_factor,
            up_to_per_s: value.up_to * unit.factor() * volume_factor,
            unit,
        }
    }

    /// Adds the caps of the type and of the tier.
    fn volume_caps(&mut self) -> Result<(), LimitsError> {
        for Amount { metric, unit, term } in self.product.limit.amounts() {
            let bound = self.bound(term, unit, &Limiter::Type, self.volume_factor());
            self.volume.push((metric, bound));
        }
        if self.product.tiers.is_empty() {
            return self.options(None);
        }
        let row = disks::find_tier(self.product, self.given.size_gib, self.query.disks)?;
        let label = match (&row.tier, row.disks) {
            (Some(tier), _) => Limiter::Tier(tier.clone()),
            (None, Some(count)) => Limiter::Disks(count),
            (None, None) => Limiter::Size,
        };
        let volume_factor = self.volume_factor();
        let taken: Vec<_> = self
            .query
            .with
            .iter()
            .filter_map(|option| Some((option.clone(), row.options.get(option)?)))
            .collect();
        for Amount { metric, unit, term } in row.amounts() {
            if !taken.iter().any(|(_, overlay)| {
                overlay
                    .amounts()
                    .iter()
                    .any(|amount| amount.metric == metric)
            }) {
                let bound = self.bound(term, unit, &label, volume_factor);
                self.volume.push((metric, bound));
            }
        }
        for (option, overlay) in &taken {
            for Amount { metric, unit, term } in overlay.amounts() {
                let bound = self.bound(term, unit, &Limiter::Option(option.clone()), volume_factor);
                self.volume.push((metric, bound));
            }
            for (metric, unit, term) in burst_terms(
                &overlay.burst_iops,
                &overlay.burst_mib_per_s,
                &overlay.burst_mb_per_s,
            ) {
                let bound = self.bound(term, unit, &Limiter::Option(option.clone()), volume_factor);
                self.burst.push((metric, bound));
            }
        }
        for (metric, unit, term) in row_burst_terms(row) {
            let bound = self.bound(term, unit, &Limiter::Burst, volume_factor);
            self.burst.push((metric, bound));
        }
        if let Some(seconds) = row.burst_s {
            self.bursts.push(BurstLength {
                of: label,
                metric: None,
                seconds,
                refill_seconds: None,
                note: None,
            });
        }
        self.remarks.extend(row.note.clone());
        self.options(Some(row))
    }

    /// Refuses options that the size does not have. Adds remarks on options that were not chosen.
    fn options(&mut self, row: Option<&LimitRow>) -> Result<(), LimitsError> {
        for option in &self.query.with {
            if !row.is_some_and(|row| row.options.contains_key(option)) {
                return Err(disks::no_such_option(self.product, row, option));
            }
        }
        let Some(row) = row else {
            return Ok(());
        };
        for (name, overlay) in &row.options {
            if self.query.with.contains(name) {
                continue;
            }
            let show = |unit: VendorUnit, term: &Term| {
                let per_s = term.value(&self.given).value * unit.factor();
                match unit {
                    VendorUnit::Iops => format!("{} IOPS", unit.show(per_s)),
                    _ => unit.show(per_s),
                }
            };
            let mut gives: Vec<String> = overlay
                .amounts()
                .iter()
                .map(|amount| show(amount.unit, amount.term))
                .collect();
            let bursts = burst_terms(
                &overlay.burst_iops,
                &overlay.burst_mib_per_s,
                &overlay.burst_mb_per_s,
            );
            gives.extend(bursts.map(|(_, unit, term)| show(unit, term)));
            self.remarks
                .push(format!("with {name}: {}", gives.join(" and ")));
        }
        Ok(())
    }

    /// Adds the burst figures of the type, with their duration.
    fn volume_burst(&mut self) {
        let Some(burst) = &self.product.burst else {
            return;
        };
        let size_gib = self.given.size_gib;
        if burst.below_gib.is_some_and(|below| size_gib >= below) {
            return;
        }
        for Amount { metric, unit, term } in burst.amounts() {
            let bound = self.bound(term, unit, &Limiter::Burst, self.volume_factor());
            let base = self.sustained(metric) / self.volume_factor();
            let peak = bound.per_s / self.volume_factor();
            if peak <= base {
                continue;
            }
            if let Some(credits) = burst.io_credits.filter(|_| metric.is_iops()) {
                self.add_burst_length(metric, credits / (peak - base), Some(credits / base));
            } else if burst.bucket_is_volume && !metric.is_iops() {
                let bucket = size_gib * 1_073_741_824.0;
                self.add_burst_length(metric, bucket / peak, Some(bucket / base));
            } else if let Some(seconds) = burst.seconds {
                self.add_burst_length(metric, seconds, None);
            }
            self.burst.push((metric, bound));
        }
    }

    fn add_burst_length(&mut self, metric: Metric, seconds: f64, refill_seconds: Option<f64>) {
        self.bursts.push(BurstLength {
            of: Limiter::Burst,
            metric: Some(metric),
            seconds,
            refill_seconds,
            note: self
                .product
                .burst
                .as_ref()
                .and_then(|burst| burst.note.clone()),
        });
    }

    /// Returns the lowest cap of the volumes.
    fn sustained(&self, metric: Metric) -> f64 {
        self.volume
            .iter()
            .filter(|(of, _)| of.applies_to(metric))
            .map(|(_, bound)| bound.per_s)
            .fold(f64::INFINITY, f64::min)
    }
}

fn row_burst_terms(row: &LimitRow) -> impl Iterator<Item = (Metric, VendorUnit, &Term)> {
    burst_terms(&row.burst_iops, &row.burst_mib_per_s, &row.burst_mb_per_s)
}

fn burst_terms<'a>(
    iops: &'a Option<Term>,
    mib_per_s: &'a Option<Term>,
    mb_per_s: &'a Option<Term>,
) -> impl Iterator<Item = (Metric, VendorUnit, &'a Term)> {
    [
        (Metric::Iops, VendorUnit::Iops, iops),
        (Metric::Bandwidth, VendorUnit::MibPerS, mib_per_s),
        (Metric::Bandwidth, VendorUnit::MbPerS, mb_per_s),
    ]
    .into_iter()
    .filter_map(|(metric, unit, term)| Some((metric, unit, term.as_ref()?)))
}

fn source(of: &str, origin: &FigureOrigin) -> LimitsSource {
    LimitsSource {
        of: of.to_owned(),
        source: origin.source.clone(),
        as_of: origin.as_of.clone(),
        evidence: origin.evidence,
        verified: origin.verified,
    }
}
