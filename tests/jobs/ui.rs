//! Unsound uses do not compile: each file in `ui/` is one, beside the compiler's message.

#[test]
fn unsound_uses_do_not_compile() {
    trybuild::TestCases::new().compile_fail("ui/*.rs");
}
