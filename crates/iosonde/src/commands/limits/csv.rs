//! One line for each figure. Units are in the names of the columns; what there is not is empty.

use crate::report::csv::text_cell;
use iosonde_study::limits::{Listed, Promise};

const HEAD: &str = "product,size_gib,disks,machine,vcpus,metric,per_s,up_to_per_s,burst_per_s,vendor_unit,limited_by,firm,as_of,source";

pub(super) fn promise(promise: &Promise) -> String {
    let query = &promise.query;
    let mut text = format!("{HEAD}\n");
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let whole = |value: Option<u32>| value.map_or(String::new(), |value| value.to_string());
    let source = promise.sources.first();
    for figure in &promise.figures {
        let fields = [
            text_cell(&promise.product),
            number(query.size_gib),
            whole(query.disks),
            text_cell(query.machine.as_deref().unwrap_or("")),
            whole(query.vcpus),
            figure.metric.key().to_owned(),
            number(Some(figure.per_s)),
            number(figure.up_to_per_s),
            number(figure.burst.as_ref().map(|burst| burst.per_s)),
            figure.unit.text().to_owned(),
            text_cell(&figure.limited_by.to_string()),
            u8::from(promise.firm).to_string(),
            text_cell(source.map_or("", |source| &source.as_of)),
            text_cell(source.map_or("", |source| &source.source)),
        ];
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

pub(super) fn list(products: &[Listed]) -> String {
    let mut text = "product,title,needs,editions,as_of,source\n".to_owned();
    for product in products {
        let fields = [
            text_cell(&product.name),
            text_cell(&product.title),
            text_cell(&product.needs.join(" ")),
            text_cell(&product.editions.join(" ")),
            text_cell(&product.as_of),
            text_cell(&product.source),
        ];
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}
