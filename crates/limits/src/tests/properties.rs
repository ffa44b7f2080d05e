//! Properties of all products, sizes and machines.

use super::*;
use crate::Query;
use proptest::prelude::*;

/// Returns all sustained figures.
fn sustained(query: &Query) -> Option<Vec<(Metric, f64)>> {
    let promise = Limits::published().evaluate(query).ok()?;
    let figures = promise.figures.iter();
    Some(
        figures
            .map(|figure| (figure.metric, figure.per_s))
            .collect(),
    )
}

fn products() -> impl Strategy<Value = Query> {
    let names: Vec<String> = Limits::published()
        .list()
        .into_iter()
        .map(|listed| listed.name)
        .collect();
    let google = ["n1", "n2", "n2d", "e2", "t2d"].map(str::to_owned).to_vec();
    let amazon = ["m5.large", "t3.nano", "c5.24xlarge"]
        .map(str::to_owned)
        .to_vec();
    (
        prop::sample::select(names),
        prop::sample::select(google),
        prop::sample::select(amazon),
        prop::sample::select(vec![
            None,
            Some("2016"),
            Some("2018"),
            Some("2020"),
            Some("2024"),
        ]),
        1u32..100,
        1u32..4,
    )
        .prop_map(|(name, google, amazon, as_of, vcpus, disks)| {
            let mut query = Query::new(&name);
            query.as_of = as_of.map(str::to_owned);
            if name.starts_with("gcp-pd") {
                query.machine = Some(google);
                query.vcpus = Some(vcpus);
            } else if name.starts_with("aws-") && vcpus % 2 == 0 {
                query.machine = Some(amazon);
            }
            if !name.contains("local-ssd") {
                query.disks = Some(disks);
            }
            query
        })
}

proptest! {
    #[test]
    fn larger_volume_is_never_slower(
        query in products(),
        size in 1u32..40_000,
        more in 0u32..40_000,
    ) {
        let at = |size_gib: u32| {
            let mut query = query.clone();
            query.size_gib = Some(f64::from(size_gib));
            // Provisioned IOPS that every size from 512 GiB allows, where they are required.
            let required =
                [("hyperdisk-extreme", 80e3), ("io1", 5000.0), ("io2", 5000.0), ("ultra", 5000.0)];
            for (name, iops) in required {
                if query.product.contains(name) {
                    query.iops = Some(iops);
                }
            }
            sustained(&query)
        };
        if let (Some(small), Some(large)) = (at(size), at(size + more)) {
            prop_assert_eq!(small.len(), large.len());
            for ((metric, small), (_, large)) in small.iter().zip(&large) {
                prop_assert!(large >= small, "{}: {} > {}", metric, small, large);
            }
        }
    }

    #[test]
    fn figures_never_exceed_their_caps(query in products(), size in 1u32..70_000) {
        let mut query = query;
        query.size_gib = Some(f64::from(size));
        if let Ok(promise) = Limits::published().evaluate(&query) {
            for figure in &promise.figures {
                prop_assert!(figure.per_s.is_finite() && figure.per_s > 0.0);
                for bound in &figure.bounds {
                    prop_assert!(figure.per_s <= bound.per_s);
                }
                prop_assert_eq!(&figure.limited_by, &figure.bounds[0].by);
                if let Some(burst) = &figure.burst {
                    prop_assert!(burst.per_s > figure.per_s);
                }
            }
        }
    }

    #[test]
    fn more_vcpus_of_a_family_are_never_slower(
        size in 1u32..70_000,
        few in 2u32..96,
        more in 0u32..96,
    ) {
        for product in ["gcp-pd-standard", "gcp-pd-balanced", "gcp-pd-ssd"] {
            for family in ["n1", "n2", "n2d", "e2"] {
                let at = |vcpus: u32| {
                    let query = format!("{product}:size={size},machine={family},vcpus={vcpus}");
                    four(&ask(&query), VendorUnit::MibPerS)
                };
                let (slow, fast) = (at(few), at(few + more));
                prop_assert!(slow.iter().zip(&fast).all(|(slow, fast)| fast >= slow));
            }
        }
    }

    #[test]
    fn query_parser_accepts_or_refuses_any_text(
        text in "[a-z0-9-]{0,12}:?([a-z]{1,8}=[0-9a-zA-Z/.]{0,8},?){0,4}",
    ) {
        if let Err(error) = try_ask(&text) {
            prop_assert!(!error.to_string().is_empty() && !error.remedy().is_empty());
        }
    }

    #[test]
    fn file_parser_accepts_or_refuses_any_text(text in "[a-z\\[\\]={}\" \n.0-9]{0,200}") {
        if let Err(error) = Limits::published().with_file("own.toml", &text) {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count() + 1);
        }
    }
}
