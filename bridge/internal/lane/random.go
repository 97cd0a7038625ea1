//go:build !gc || !(amd64 || arm64) || purego

package lane

import "math/rand/v2"

// Index is a lane, less than [Count]. Without a way to tell goroutines apart
// it is a random one.
func Index() uint32 {
	return rand.Uint32() >> (32 - bits)
}
