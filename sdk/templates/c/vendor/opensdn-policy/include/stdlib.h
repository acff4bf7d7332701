#pragma once
#include <stddef.h>

_Noreturn void abort(void);
void *malloc(size_t size);
void *realloc(void *block, size_t size);
void free(void *block);
