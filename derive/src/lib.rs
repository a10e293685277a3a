//! `#[derive(Element)]`: makes a plain struct a type that may live in symmetric memory.
//!
//! Invariant: the derive accepts a struct only if each of its bit patterns is a value and each of its bytes
//! belongs to a field, so that any bytes that a peer writes are a value, and no byte that a peer reads is
//! uninitialised. The macro itself checks what it can see (the kind of type, generics, `repr`) and refuses a
//! type with a message. Conditions that only the compiler can check (the traits and sizes of the fields)
//! become assertions in the generated code.
//!
//! The macro names `::pelago::Element`; use it through that crate.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Result};

/// Derives `pelago::Element` for a struct that is `Copy`, has no generic parameters and is
/// `#[repr(C)]` or `#[repr(transparent)]`.
///
/// Compilation fails if the type is an enum or a union, has generic parameters or lacks the `repr`, if
/// the type of a field is not an `Element`, or if there is padding between or after the fields.
///
/// ```text
/// #[derive(Clone, Copy, pelago::Element)]
/// #[repr(C)]
/// struct Particle {
///     position: [f64; 3],
///     id: u64,
/// }
/// ```
#[proc_macro_derive(Element)]
pub fn derive_element(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Generates the implementation and its assertions, or returns the reason why the type is refused.
fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let fields = struct_fields(input)?;
    refuse_generics(input)?;
    require_repr(input)?;

    let name = &input.ident;
    let types: Vec<_> = fields.iter().map(|field| &field.ty).collect();
    let element_checks = types.iter().map(|ty| quote_spanned! { ty.span() => is_element::<#ty>(); });
    let padding = format!(
        "`{name}` has padding between or after its fields: order them from the largest alignment to the \
         smallest, or make the padding a field"
    );
    Ok(quote! {
        // SAFETY: `Element` promises that any bytes are a value and no byte is padding: the implementations
        // of the fields promise this for the fields, and the assertions below check the rest at compile time.
        #[automatically_derived]
        unsafe impl ::pelago::Element for #name {}
        const _: () = {
            const fn is_element<T: ::pelago::Element>() {}
            #(#element_checks)*
            ::core::assert!(
                ::core::mem::size_of::<#name>() == 0 #(+ ::core::mem::size_of::<#types>())*,
                #padding
            );
        };
    })
}

/// The fields of a struct; an error for an enum or a union.
fn struct_fields(input: &DeriveInput) -> Result<&Fields> {
    let why = match &input.data {
        Data::Struct(data) => return Ok(&data.fields),
        Data::Enum(_) => {
            "an enum has bit patterns that are no value, and a peer may write them: store an integer"
        }
        Data::Union(_) => "which field of a union is valid is unknown to a peer: store a struct or bytes",
    };
    Err(Error::new(input.ident.span(), format!("`Element` can be derived for structs only: {why}")))
}

fn refuse_generics(input: &DeriveInput) -> Result<()> {
    if input.generics.params.is_empty() {
        return Ok(());
    }
    let message = "`Element` cannot be derived for a type with generic parameters, whose padding is not \
                   known here: write the struct with the types that it is used with";
    Err(Error::new_spanned(&input.generics, message))
}

/// Requires a `repr` that fixes the layout, so that all PEs agree on it.
fn require_repr(input: &DeriveInput) -> Result<()> {
    let mut fixed = false;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            fixed |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
            if meta.input.peek(syn::token::Paren) {
                let arguments;
                syn::parenthesized!(arguments in meta.input);
                arguments.parse::<TokenStream>()?;
            }
            Ok(())
        })?;
    }
    if fixed {
        return Ok(());
    }
    let message = "`Element` needs a layout that all PEs agree on: add `#[repr(C)]`, or \
                   `#[repr(transparent)]` to a struct of one field";
    Err(Error::new(input.ident.span(), message))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code that the derive generates for `source`, as text without white space.
    fn accepted(source: &str) -> String {
        let tokens = expand(&syn::parse_str(source).unwrap()).unwrap().to_string();
        tokens.split_whitespace().collect()
    }

    /// The message with which the derive refuses `source`.
    fn refused(source: &str) -> String {
        expand(&syn::parse_str(source).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn named_fields_are_each_checked_and_summed() {
        let code = accepted("#[repr(C)] struct P { x: f64, id: u64 }");
        assert!(code.contains("unsafeimpl::pelago::ElementforP{}"), "{code}");
        assert!(code.contains("is_element::<f64>();is_element::<u64>();"), "{code}");
        assert!(
            code.contains("size_of::<P>()==0+::core::mem::size_of::<f64>()+::core::mem::size_of::<u64>()"),
            "{code}"
        );
    }

    #[test]
    fn tuple_structs_and_transparent_are_accepted() {
        assert!(accepted("#[repr(transparent)] struct Id(u32);").contains("is_element::<u32>();"));
    }

    #[test]
    fn repr_with_arguments_or_in_parts_is_understood() {
        assert!(accepted("#[repr(C, align(16))] struct A([u64; 2]);").contains("ElementforA"));
        assert!(accepted("#[repr(align(8))] #[repr(C)] struct A(u64);").contains("ElementforA"));
    }

    #[test]
    fn the_padding_message_names_the_type() {
        assert!(accepted("#[repr(C)] struct Gap(u8, u32);").contains("`Gap`haspadding"));
    }

    #[test]
    fn a_missing_repr_is_refused() {
        assert!(refused("struct P { x: f64 }").contains("add `#[repr(C)]`"));
    }

    #[test]
    fn another_repr_is_not_enough() {
        assert!(refused("#[repr(align(8))] struct P { x: f64 }").contains("add `#[repr(C)]`"));
        assert!(refused("#[repr(packed)] struct P { x: f64 }").contains("add `#[repr(C)]`"));
    }

    #[test]
    fn enums_and_unions_are_refused_each_with_its_reason() {
        assert!(refused("#[repr(C)] enum E { A }").contains("structs only: an enum"));
        assert!(refused("#[repr(C)] union U { a: u32 }").contains("structs only: which field of a union"));
    }

    #[test]
    fn generic_parameters_of_every_kind_are_refused() {
        for source in ["struct G<T>(T);", "struct G<const N: usize>([u8; N]);", "struct G<'a>(&'a u8);"] {
            assert!(refused(&format!("#[repr(C)] {source}")).contains("generic parameters"), "{source}");
        }
    }
}
