//! The derive `Reads` of opensdn-policy-sdk: a struct's fields are what a policy declares to read,
//! so that nothing can be used without being declared.

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as Tokens};
use quote::quote;
use syn::{
    Attribute, Data, DeriveInput, Error, Field, Fields, Ident, LitStr, Result, parse_macro_input,
};

/// Makes a struct the declaration of what a policy reads of one kind of object.
///
/// - on the struct: `#[reads(group = "…", kind = "…")]`, optionally
///   `operations(Create, Update, Delete)` (default: create and update)
/// - on each field: `#[read("/json/pointer")]`; a part that may be absent is an `Option`
#[proc_macro_derive(Reads, attributes(reads, read))]
pub fn derive_reads(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: &DeriveInput) -> Result<Tokens> {
    let target = Target::parse(input)?;
    let parts = parts(input)?;
    let name = &input.ident;
    let Target { group, kind, operations } = target;
    let pointers: Vec<_> = parts.iter().map(|part| &part.pointer).collect();
    let fields = parts.iter().enumerate().map(|(number, Part { field, pointer })| {
        quote! {
            #field: ::opensdn_policy_sdk::FromPart::from_part(
                parts.get(#number).and_then(::core::option::Option::as_deref),
                #pointer,
            )?
        }
    });
    Ok(quote! {
        impl ::opensdn_policy_sdk::Reads for #name {
            const GROUP: &'static str = #group;
            const KIND: &'static str = #kind;
            const OPERATIONS: &'static [::opensdn_policy_sdk::Operation] =
                &[#(::opensdn_policy_sdk::Operation::#operations),*];
            const POINTERS: &'static [&'static str] = &[#(#pointers),*];

            fn from_parts(
                parts: &[::core::option::Option<::std::string::String>],
            ) -> ::core::result::Result<Self, ::opensdn_policy_sdk::Unreadable> {
                ::core::result::Result::Ok(Self { #(#fields),* })
            }
        }
    })
}

struct Target {
    group: LitStr,
    kind: LitStr,
    operations: Vec<Ident>,
}

impl Target {
    fn parse(input: &DeriveInput) -> Result<Self> {
        let (mut group, mut kind, mut operations) = (None, None, Vec::new());
        let attribute = find(&input.attrs, "reads").ok_or_else(|| {
            Error::new_spanned(&input.ident, "add #[reads(group = \"…\", kind = \"…\")]")
        })?;
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("group") {
                group = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("kind") {
                kind = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("operations") {
                meta.parse_nested_meta(|operation| {
                    operations.push(operation.path.require_ident()?.clone());
                    Ok(())
                })?;
            } else {
                return Err(meta.error("expected group, kind or operations"));
            }
            Ok(())
        })?;
        if operations.is_empty() {
            operations =
                ["Create", "Update"].map(|name| Ident::new(name, Span::call_site())).into();
        }
        let missing = |what| Error::new_spanned(attribute, format!("{what} = \"…\" is missing"));
        Ok(Self {
            group: group.ok_or_else(|| missing("group"))?,
            kind: kind.ok_or_else(|| missing("kind"))?,
            operations,
        })
    }
}

struct Part<'a> {
    field: &'a Ident,
    pointer: LitStr,
}

fn parts(input: &DeriveInput) -> Result<Vec<Part<'_>>> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(input, "Reads is derived for structs"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&data.fields, "Reads needs named fields"));
    };
    if fields.named.is_empty() {
        return Err(Error::new_spanned(
            &input.ident,
            "declare at least one part; #[read(\"/metadata/name\")] if none matters",
        ));
    }
    fields.named.iter().map(part).collect()
}

fn part(field: &Field) -> Result<Part<'_>> {
    let attribute = find(&field.attrs, "read")
        .ok_or_else(|| Error::new_spanned(field, "add #[read(\"/json/pointer\")]"))?;
    let pointer: LitStr = attribute.parse_args()?;
    let text = pointer.value();
    if !text.is_empty() && !text.starts_with('/') {
        return Err(Error::new_spanned(pointer, "a JSON Pointer is empty or begins with `/`"));
    }
    let ident = field.ident.as_ref().ok_or_else(|| Error::new_spanned(field, "a named field"))?;
    Ok(Part { field: ident, pointer })
}

fn find<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a Attribute> {
    attributes.iter().find(|attribute| attribute.path().is_ident(name))
}
