package recording

import "io"

// Rings reads a recording and gives the names of its rings. Of one that is cut
// or damaged they are those that a [Player] comes to.
func Rings(in io.Reader) (names []string, err error) {
	r, err := NewReader(in)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	known := make(map[int]bool)
	var rec Record
	for r.Next(&rec) == nil {
		if rec.Op == OpOpen && !known[rec.Ring] {
			known[rec.Ring] = true
			names = append(names, rec.Name)
		}
	}
	return names, nil
}
