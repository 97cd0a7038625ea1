//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"runtime"
	"unsafe"
)

// memoryFault is the panic that the runtime raises for a bad address when
// debug.SetPanicOnFault is on.
type memoryFault interface {
	runtime.Error
	Addr() uintptr
}

// faultIn says whether a recovered panic is an access to a page of mem that
// the file behind it no longer has: the file has shrunk.
func faultIn(mem []byte, recovered any) bool {
	f, ok := recovered.(memoryFault)
	if !ok {
		return false
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	return f.Addr() >= start && f.Addr()-start < uintptr(len(mem))
}
