//go:build linux && (amd64 || arm64)

package ringbuf

import "fmt"

// Peek reads the header of the file at path as it stands, whether or not it
// makes sense, for those who want to say what is wrong with a ring. The error
// is why [OpenReader] wouldn't take it; the header is that of the file all the
// same, or zero where there is none.
func Peek(path string) (Header, error) {
	f, _, err := openChecked(path, Observe, options{})
	if err != nil {
		return Header{}, fmt.Errorf("ring %s: %w", path, err)
	}
	defer f.Close()
	h, _, _, err := identify(f)
	if err != nil {
		err = fmt.Errorf("ring %s: %w", path, err)
	}
	return h, err
}
