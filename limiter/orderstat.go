package limiter

// sample is one observation, and a node of its tracker's order tree: a treap over latencies, whose
// subtrees know their sizes. Nodes are named by place in the tracker's ring + 1; 0 is none.
type sample struct {
	at      int64 // ns
	latency uint32
	rank    uint32 // the treap's priority: no node's is above its parent's
	left    uint16
	right   uint16
	parent  uint16
	size    uint16 // nodes of the subtree
}

// orderTree finds the k-th smallest of a tracker's samples: insert, remove and select take O(log n)
// steps, whatever order latencies come in, since nobody outside knows the ranks.
type orderTree struct {
	nodes []sample
	root  uint16
}

func (t *orderTree) node(i uint16) *sample { return &t.nodes[i-1] }

// size returns how many nodes are under i, itself included.
func (t *orderTree) size(i uint16) int {
	if i == 0 {
		return 0
	}
	return int(t.node(i).size)
}

// insert adds node i, whose latency and rank are set.
func (t *orderTree) insert(i uint16) {
	n := t.node(i)
	n.left, n.right, n.parent, n.size = 0, 0, 0, 1
	under := t.root
	for at := under; at != 0; {
		p := t.node(at)
		p.size++
		under = at
		if at = p.right; n.latency < p.latency {
			at = p.left
		}
	}
	n.parent = under
	switch {
	case under == 0:
		t.root = i
	case n.latency < t.node(under).latency:
		t.node(under).left = i
	default:
		t.node(under).right = i
	}
	for n.parent != 0 && t.node(n.parent).rank < n.rank {
		t.raise(i)
	}
}

// remove takes node i out.
func (t *orderTree) remove(i uint16) {
	n := t.node(i)
	for n.left != 0 && n.right != 0 {
		child := n.left
		if t.node(n.right).rank > t.node(child).rank {
			child = n.right
		}
		t.raise(child)
	}
	t.replace(i, n.left|n.right) // at most one of them is not 0
	for p := n.parent; p != 0; p = t.node(p).parent {
		t.node(p).size--
	}
}

// rebuild makes the tree anew of the nodes that are not from before a time: in the order of the old
// tree and by their ranks, which needs O(n) steps however many nodes go.
func (t *orderTree) rebuild(before int64) {
	last := t.append(t.root, 0, before)
	t.root = 0
	for ; last != 0; last = t.node(last).parent {
		t.measure(last)
		t.root = last
	}
}

// append puts the nodes of the old subtree of i that stay to the right of a new tree, whose last node
// is last, and returns the last node then. On the new tree's way to its last node, sizes are open.
func (t *orderTree) append(i, last uint16, before int64) uint16 {
	if i == 0 {
		return last
	}
	n := t.node(i)
	right := n.right
	last = t.append(n.left, last, before)
	if n.at >= before {
		var under uint16 // what the node comes over
		for last != 0 && t.node(last).rank < n.rank {
			under = last
			t.measure(under)
			last = t.node(last).parent
		}
		n.left, n.right, n.parent = under, 0, last
		if under != 0 {
			t.node(under).parent = i
		}
		if last != 0 {
			t.node(last).right = i
		}
		last = i
	}
	return t.append(right, last, before)
}

// measure counts the subtree of node i, whose children are counted.
func (t *orderTree) measure(i uint16) {
	n := t.node(i)
	n.size = uint16(1 + t.size(n.left) + t.size(n.right))
}

// kth returns the k-th smallest latency; k is counted from 1 and at most the tree's size.
func (t *orderTree) kth(k int) uint32 {
	at := t.root
	for {
		n := t.node(at)
		left := t.size(n.left)
		switch {
		case k <= left:
			at = n.left
		case k == left+1:
			return n.latency
		default:
			k -= left + 1
			at = n.right
		}
	}
}

// raise rotates node i over its parent.
func (t *orderTree) raise(i uint16) {
	n := t.node(i)
	under := n.parent
	p := t.node(under)
	t.replace(under, i)
	var moved uint16
	if p.left == i {
		moved = n.right
		p.left, n.right = moved, under
	} else {
		moved = n.left
		p.right, n.left = moved, under
	}
	if moved != 0 {
		t.node(moved).parent = under
	}
	p.parent = i
	n.size = p.size
	p.size = uint16(1 + t.size(p.left) + t.size(p.right))
}

// replace puts node by, which may be 0, where node i is under its parent.
func (t *orderTree) replace(i, by uint16) {
	parent := t.node(i).parent
	if by != 0 {
		t.node(by).parent = parent
	}
	switch {
	case parent == 0:
		t.root = by
	case t.node(parent).left == i:
		t.node(parent).left = by
	default:
		t.node(parent).right = by
	}
}
