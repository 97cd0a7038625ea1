//go:build gc && !purego

#include "textflag.h"

// func stackPointer() uintptr
TEXT ·stackPointer(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ SP, ret+0(FP)
	RET
