//go:build gc && !purego

#include "textflag.h"

// func stackPointer() uintptr
TEXT ·stackPointer(SB), NOSPLIT|NOFRAME, $0-8
	MOVD RSP, R0
	MOVD R0, ret+0(FP)
	RET
