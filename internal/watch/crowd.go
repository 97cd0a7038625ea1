package watch

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// maxCauses is how many causes are told apart in what is said of many rings.
const maxCauses = maxSingle

// sum makes one notice of all that have the same cause. That others of the kind
// were told one by one is said by more.
func sum(list []Notice, more bool) []Notice {
	var order []string
	groups := make(map[string][]Notice)
	for _, n := range list {
		key := n.cause()
		if groups[key] == nil {
			if len(order) == maxCauses {
				key = order[maxCauses-1]
			} else {
				order = append(order, key)
			}
		}
		groups[key] = append(groups[key], n)
	}
	sums := make([]Notice, len(order))
	for i, key := range order {
		sums[i] = sumOf(groups[key], more)
	}
	return sums
}

// sumOf makes one notice of several of a kind. Where not all have the same
// cause it has that of the first.
func sumOf(list []Notice, more bool) Notice {
	slices.SortStableFunc(list, func(a, b Notice) int { return strings.Compare(a.Path, b.Path) })
	first := list[0]
	paths := make([]string, len(list))
	other, again := false, 0
	for i, n := range list {
		paths[i] = n.Path
		again += n.Again
		other = other || n.cause() != first.cause()
	}
	paths = slices.Compact(paths)
	if len(paths) == 1 {
		if len(list) > 1 {
			first.Text = fmt.Sprintf("%s (%d times)", first.Text, len(list))
		}
		first.Again = again
		return first
	}
	what, text := "rings", first.Text
	if first.Kind == NotRings {
		what = "files"
	}
	if more {
		what = "more " + what
	}
	if len(list) > len(paths) {
		what = fmt.Sprintf("%s (%d times)", what, len(list))
	}
	if other {
		text = "for several reasons, of which the first is: " + text
	}
	return Notice{
		Kind: first.Kind, Level: max(first.Level, slog.LevelInfo), Err: first.Err, Again: again,
		Text: fmt.Sprintf("%d %s, %s to %s: %s", len(paths), what, readable(paths[0]), readable(paths[len(paths)-1]), text),
	}
}

// cause is the same for notices of one kind that say the same of different
// rings.
func (n Notice) cause() string {
	var foreign *ringbuf.ForeignReadError
	if n.Err == nil || errors.As(n.Err, &foreign) { // positions aren't a cause
		return n.Text
	}
	return n.Text + "\x00" + strings.ReplaceAll(n.Err.Error(), n.Path, "")
}
