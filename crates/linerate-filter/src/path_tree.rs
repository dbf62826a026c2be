//! The values that filters name, as a tree of paths.

use hashbrown::HashMap;

use crate::{
    text::Text,
    tree::{Path, Segment},
};

/// The position of the whole payload in the tree.
pub(crate) const ROOT: usize = 0;

/// A tree of paths, in which paths with the same beginning share nodes.
#[derive(Debug)]
pub(crate) struct PathTree {
    nodes: Vec<PathNode>,
    free: Vec<usize>,
}

/// A value that a filter names, or one that contains such a value.
#[derive(Debug)]
pub(crate) struct PathNode {
    pub(crate) parent: usize,
    pub(crate) fields: Fields,
    /// The wanted elements of a list and their positions in the tree, sorted by element.
    pub(crate) items: Vec<(u64, usize)>,
    segment: Option<Segment>,
    /// The number of paths that end here or pass through.
    uses: usize,
}

/// The number of names of an object that are compared one by one.
const FEW: usize = 8;

/// If the names have more distinct lengths than this, keys are examined one by one.
const FEW_LENGTHS: u32 = 4;

/// The wanted fields of an object, by name.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// The names that were added first. Comparing a key with a few names is faster than a lookup.
    few: Vec<(Box<[u8]>, usize)>,
    others: HashMap<Box<[u8]>, usize, foldhash::fast::RandomState>,
    /// The marks of all names. Most keys of a payload have a mark that is not among them.
    marks: u64,
    /// One bit for the length of each name. The last bit stands for all larger lengths, and is also
    /// set if the names have many different lengths.
    lengths: u64,
    /// True if a name with control characters was ever added.
    have_controls: bool,
}

impl PathTree {
    pub(crate) fn new() -> Self {
        Self {
            nodes: vec![PathNode::new(ROOT, None)],
            free: Vec::new(),
        }
    }

    /// Adds a path and returns its position.
    pub(crate) fn add(&mut self, path: &Path) -> usize {
        let mut place = ROOT;
        for segment in &path.0 {
            place = match self.nodes[place].find(segment) {
                Some(child) => child,
                None => self.add_child(place, segment),
            };
            self.nodes[place].uses += 1;
        }
        place
    }

    /// Removes a path that was added before.
    pub(crate) fn remove(&mut self, mut place: usize) {
        while place != ROOT {
            let node = &mut self.nodes[place];
            let parent = node.parent;
            node.uses -= 1;
            if node.uses == 0 {
                let segment = std::mem::replace(node, PathNode::new(ROOT, None)).segment;
                self.nodes[parent].remove(segment);
                self.free.push(place);
            }
            place = parent;
        }
    }

    #[inline]
    pub(crate) fn node(&self, place: usize) -> &PathNode {
        &self.nodes[place]
    }

    /// Returns a number that is larger than every position.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    fn add_child(&mut self, parent: usize, segment: &Segment) -> usize {
        let node = PathNode::new(parent, Some(segment.clone()));
        let place = match self.free.pop() {
            Some(place) => {
                self.nodes[place] = node;
                place
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        };
        self.nodes[parent].insert(segment, place);
        place
    }
}

impl Default for PathTree {
    fn default() -> Self {
        Self::new()
    }
}

impl PathNode {
    fn new(parent: usize, segment: Option<Segment>) -> Self {
        Self {
            parent,
            fields: Fields::default(),
            items: Vec::new(),
            segment,
            uses: 0,
        }
    }

    fn find(&self, segment: &Segment) -> Option<usize> {
        match segment {
            Segment::Field(name) => self.fields.find(name.as_bytes()),
            Segment::Index(index) => {
                let at = self.items.binary_search_by_key(index, |item| item.0).ok()?;
                Some(self.items[at].1)
            }
        }
    }

    fn insert(&mut self, segment: &Segment, place: usize) {
        match segment {
            Segment::Field(name) => {
                self.fields.insert(name.as_bytes(), place);
            }
            Segment::Index(index) => {
                let at = self.items.partition_point(|item| item.0 < *index);
                self.items.insert(at, (*index, place));
            }
        }
    }

    fn remove(&mut self, segment: Option<Segment>) {
        match segment {
            Some(Segment::Field(name)) => self.fields.remove(name.as_bytes()),
            Some(Segment::Index(index)) => self.items.retain(|item| item.0 != index),
            None => {}
        }
    }
}

impl Fields {
    /// Returns the position of a field.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        if self.marks & Self::mark(name) == 0 {
            return None;
        }
        let few = self.few.iter().find(|(few, _)| **few == *name);
        match few {
            Some((_, place)) => Some(*place),
            None if self.others.is_empty() => None,
            None => self.find_other(name),
        }
    }

    #[inline(never)]
    fn find_other(&self, name: &[u8]) -> Option<usize> {
        self.others.get(name).copied()
    }

    /// Returns the position of a field by its key as written in JSON, without the quotes.
    #[inline]
    pub(crate) fn find_key(&self, raw: &[u8], may_be_escaped: bool) -> Option<usize> {
        if may_be_escaped && raw.contains(&b'\\') {
            return self.find(&Text::from_json(raw, true)?.decoded());
        }
        // A key that equals a name is valid UTF-8, because the name is. Control characters are
        // always escaped in JSON.
        let place = self.find(raw)?;
        (!self.have_controls || raw.iter().all(|byte| *byte >= b' ')).then_some(place)
    }

    #[inline]
    pub(crate) fn lengths(&self) -> u64 {
        self.lengths
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.others.is_empty()
    }

    fn insert(&mut self, name: &[u8], place: usize) {
        self.marks |= Self::mark(name);
        self.lengths |= 1 << name.len().min(63);
        if self.lengths.count_ones() > FEW_LENGTHS {
            self.lengths |= 1 << 63;
        }
        self.have_controls |= name.iter().any(|byte| *byte < b' ');
        match self.few.len() {
            0..FEW => self.few.push((name.into(), place)),
            _ => drop(self.others.insert(name.into(), place)),
        }
    }

    fn remove(&mut self, name: &[u8]) {
        self.few.retain(|(few, _)| **few != *name);
        self.others.remove(name);
    }

    /// Returns a mask with one bit, chosen by the length, the first and the last byte of a name.
    #[inline]
    fn mark(name: &[u8]) -> u64 {
        let (first, last) = match name {
            [first, .., last] => (*first, *last),
            _ => (0, 0),
        };
        let sum = name.len() ^ usize::from(first) << 2 ^ usize::from(last) << 1;
        1 << (sum % 64)
    }
}

#[cfg(test)]
mod tests {
    use super::{PathTree, ROOT};
    use crate::tree::{
        Path,
        Segment::{Field, Index},
    };

    #[test]
    fn paths_share_prefixes_and_are_removed_completely() {
        let mut wanted = PathTree::new();
        let path = |last| Path(vec![Field("a".into()), Field("b".into()), last]);
        let one = wanted.add(&path(Index(7)));
        let other = wanted.add(&path(Index(2)));
        assert_eq!(wanted.len(), 5, "the root, a, b and two elements");
        assert_eq!(wanted.add(&path(Index(7))), one);
        assert_eq!(wanted.add(&Path::default()), ROOT);
        let parent = wanted.node(one).parent;
        assert_eq!(wanted.node(parent).items, [(2, other), (7, one)]);
        wanted.remove(ROOT);
        wanted.remove(one);
        wanted.remove(other);
        assert_eq!(wanted.node(parent).items, [(7, one)]);
        wanted.remove(one);
        assert!(wanted.node(ROOT).fields.is_empty());
        let again = wanted.add(&path(Field("x".into())));
        assert!(wanted.len() == 5 && again != ROOT, "positions are reused");
    }
}
