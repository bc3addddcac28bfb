//! Property tests: whatever happens in whatever order, every call is answered exactly once and nobody hears another's.

use proptest::prelude::*;

use super::life::live;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    // checks 35 36 37 94 96 97 98 99
    #[test]
    fn no_life_of_a_link_mixes_up_its_clients(steps in proptest::collection::vec(any::<[u8; 4]>(), 0..250)) {
        live(&steps.concat());
    }
}
