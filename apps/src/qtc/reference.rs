//! The expected results of runs at threshold 1, for some numbers of points. Invariant: the values come from a
//! serial program in C that was written independently of this one and compiled without contraction of float
//! operations.

/// Points, and the clusters that they fall into at threshold 1.
pub(super) struct Reference {
    pub(super) points: u32,
    /// Hash of the coordinates.
    pub(super) points_hash: u64,
    pub(super) degree_max: u32,
    pub(super) clusters: usize,
    /// Points in no cluster at the end.
    pub(super) left: u32,
    /// Sum of the squares of the clusters' sizes.
    pub(super) squares: u64,
    /// Hash of size and seed of the clusters in their order.
    pub(super) hash: u64,
}

/// The threshold to which the references belong.
pub(super) const REFERENCE_THRESHOLD: f32 = 1.0;

pub(super) const REFERENCES: [Reference; 4] = [
    Reference {
        points: 512,
        points_hash: 0x25ba_a486_4806_d5c7,
        degree_max: 19,
        clusters: 125,
        left: 59,
        squares: 2251,
        hash: 0x274a_1a43_b1d8_d4bc,
    },
    Reference {
        points: 1024,
        points_hash: 0xb556_de2c_3722_3576,
        degree_max: 52,
        clusters: 190,
        left: 58,
        squares: 8778,
        hash: 0xc174_6dd7_bde2_541e,
    },
    Reference {
        points: 2048,
        points_hash: 0x1a6f_5620_df2d_3f12,
        degree_max: 103,
        clusters: 283,
        left: 59,
        squares: 26487,
        hash: 0x00e3_0aef_7dd7_97d2,
    },
    Reference {
        points: 4096,
        points_hash: 0x5ba9_cd3c_02d4_b803,
        degree_max: 137,
        clusters: 373,
        left: 45,
        squares: 76081,
        hash: 0x48d8_120d_57a4_a301,
    },
];

/// The reference for `points` points at `threshold`, if there is one.
pub(super) fn find(points: u32, threshold: f32) -> Option<&'static Reference> {
    REFERENCES.iter().find(|reference| reference.points == points && threshold == REFERENCE_THRESHOLD)
}
