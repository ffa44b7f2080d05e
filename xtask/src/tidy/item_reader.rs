//! Public items of a file, with the names that their signatures make public.

use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{ImplItem, Item, Visibility};

/// A public item, or the names that a trait implementation of a type makes public.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PublicItem {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// The type that a method or constant belongs to.
    pub(crate) owner: Option<String>,
    /// Names in its signature, or in its public fields.
    pub(crate) mentions: BTreeSet<String>,
}

/// Adds the public items of an item. Modules and functions are not entered.
pub(crate) fn add_items_of(item: &Item, items: &mut Vec<PublicItem>) {
    let mut mentions = Mentions::default();
    let (vis, ident) = match item {
        Item::Impl(item) => return add_impl_items(item, items),
        Item::Fn(item) => {
            mentions.visit_signature(&item.sig);
            (&item.vis, &item.sig.ident)
        }
        Item::Struct(item) => {
            mentions.visit_generics(&item.generics);
            mentions.add_public_fields(&item.fields);
            (&item.vis, &item.ident)
        }
        Item::Enum(item) => {
            mentions.visit_item_enum(item);
            (&item.vis, &item.ident)
        }
        Item::Trait(item) => {
            mentions.add_trait(item);
            (&item.vis, &item.ident)
        }
        Item::Type(item) => {
            mentions.visit_type(&item.ty);
            (&item.vis, &item.ident)
        }
        Item::Const(item) => {
            mentions.visit_type(&item.ty);
            (&item.vis, &item.ident)
        }
        Item::Static(item) => {
            mentions.visit_type(&item.ty);
            (&item.vis, &item.ident)
        }
        _ => return,
    };
    add_item(items, vis, ident, None, mentions);
}

fn add_item(
    items: &mut Vec<PublicItem>,
    vis: &Visibility,
    ident: &syn::Ident,
    owner: Option<&str>,
    mentions: Mentions,
) {
    if matches!(vis, Visibility::Public(_)) {
        items.push(PublicItem {
            name: ident.to_string(),
            line: ident.span().start().line,
            owner: owner.map(str::to_owned),
            mentions: mentions.0,
        });
    }
}

fn add_impl_items(item: &syn::ItemImpl, items: &mut Vec<PublicItem>) {
    let syn::Type::Path(of) = &*item.self_ty else {
        return;
    };
    let Some(owner) = of
        .path
        .segments
        .last()
        .map(|segment| segment.ident.to_string())
    else {
        return;
    };
    for inner in &item.items {
        let mut mentions = Mentions::default();
        match inner {
            ImplItem::Fn(function) if item.trait_.is_none() => {
                mentions.visit_signature(&function.sig);
                add_item(
                    items,
                    &function.vis,
                    &function.sig.ident,
                    Some(&owner),
                    mentions,
                );
            }
            ImplItem::Const(constant) if item.trait_.is_none() => {
                mentions.visit_type(&constant.ty);
                add_item(
                    items,
                    &constant.vis,
                    &constant.ident,
                    Some(&owner),
                    mentions,
                );
            }
            // An associated type becomes public with the type that implements the trait.
            ImplItem::Type(associated) => {
                mentions.visit_type(&associated.ty);
                items.push(PublicItem {
                    name: owner.clone(),
                    line: 0,
                    owner: Some(owner.clone()),
                    mentions: mentions.0,
                });
            }
            _ => {}
        }
    }
}

/// Collects the names in types.
#[derive(Default)]
struct Mentions(BTreeSet<String>);

impl Mentions {
    fn add_public_fields(&mut self, fields: &syn::Fields) {
        for field in fields {
            if matches!(field.vis, Visibility::Public(_)) {
                self.visit_type(&field.ty);
            }
        }
    }

    fn add_trait(&mut self, item: &syn::ItemTrait) {
        for bound in &item.supertraits {
            self.visit_type_param_bound(bound);
        }
        for inner in &item.items {
            match inner {
                syn::TraitItem::Fn(function) => self.visit_signature(&function.sig),
                other => self.visit_trait_item(other),
            }
        }
    }
}

impl<'ast> Visit<'ast> for Mentions {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.extend(
            path.segments
                .iter()
                .map(|segment| segment.ident.to_string()),
        );
        visit::visit_path(self, path);
    }
}
