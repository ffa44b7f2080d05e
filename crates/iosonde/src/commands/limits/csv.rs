//! CSV: one line for each figure. Units are in the column names. Missing values are empty.

use iosonde_limits::{Listed, Promise};
use iosonde_report::csv::csv_line;

const HEAD: &str = "product,size_gib,disks,machine,vcpus,metric,per_s,up_to_per_s,\
                    burst_per_s,vendor_unit,limited_by,firm,as_of,source";

pub(super) fn promise(promise: &Promise) -> String {
    let query = &promise.query;
    let mut text = format!("{HEAD}\n");
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let whole = |value: Option<u32>| value.map_or(String::new(), |value| value.to_string());
    let source = promise.sources.first();
    for figure in &promise.figures {
        let fields = [
            promise.product.clone(),
            number(query.size_gib),
            whole(query.disks),
            query.machine.clone().unwrap_or_default(),
            whole(query.vcpus),
            figure.metric.key().to_owned(),
            number(Some(figure.per_s)),
            number(figure.up_to_per_s),
            number(figure.burst.as_ref().map(|burst| burst.per_s)),
            figure.unit.text().to_owned(),
            figure.limited_by.to_string(),
            u8::from(promise.firm).to_string(),
            source.map_or(String::new(), |source| source.as_of.clone()),
            source.map_or(String::new(), |source| source.source.clone()),
        ];
        text.push_str(&csv_line(fields));
    }
    text
}

pub(super) fn products_csv(products: &[Listed]) -> String {
    let mut text = "product,title,needs,editions,as_of,source\n".to_owned();
    for product in products {
        let fields = [
            product.name.clone(),
            product.title.clone(),
            product.needs.join(" "),
            product.editions.join(" "),
            product.as_of.clone(),
            product.source.clone(),
        ];
        text.push_str(&csv_line(fields));
    }
    text
}
