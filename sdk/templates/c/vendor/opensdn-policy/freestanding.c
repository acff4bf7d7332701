// What the generated bindings need of a C library. A policy is called once and then thrown away with
// its memory, so nothing is ever given back: texts and lists that it returns may be constants.

#include <stdlib.h>
#include <string.h>

#include "policy.h"

enum { PAGE = 65536, ALIGN = 16 };

extern unsigned char __heap_base;
static size_t next;

// The two steps that no module has unless it is asked for; a policy that patches defines it itself.
__attribute__((weak)) bool exports_policy_mutate(policy_request_t *request, policy_string_t *settings,
                                                 policy_list_patch_operation_t *patch,
                                                 policy_string_t *failure) {
  (void)request, (void)settings, (void)failure;
  *patch = (policy_list_patch_operation_t){0};
  return true;
}

// The world is written into the module by `kubectl opensdn policy build`, not by an object file.
void __component_type_object_force_link_policy(void) {}

void abort(void) { __builtin_trap(); }

void *malloc(size_t size) {
  if (next == 0) next = ((size_t)&__heap_base + ALIGN - 1) & ~(size_t)(ALIGN - 1);
  size_t have = __builtin_wasm_memory_size(0) * PAGE;
  if (size > SIZE_MAX - PAGE - next - ALIGN) return NULL;
  // In front of each block stands its size, for realloc.
  size_t end = next + ALIGN + ((size + ALIGN - 1) & ~(size_t)(ALIGN - 1));
  if (end > have && __builtin_wasm_memory_grow(0, (end - have + PAGE - 1) / PAGE) == SIZE_MAX)
    return NULL;
  size_t *block = (size_t *)next;
  *block = size;
  next = end;
  return (unsigned char *)block + ALIGN;
}

void free(void *block) { (void)block; }

void *realloc(void *old, size_t size) {
  void *block = malloc(size);
  if (block == NULL || old == NULL) return block;
  size_t had = *(size_t *)((unsigned char *)old - ALIGN);
  return memcpy(block, old, had < size ? had : size);
}

void *memcpy(void *restrict to, const void *restrict from, size_t count) {
  unsigned char *target = to;
  const unsigned char *source = from;
  while (count-- > 0) *target++ = *source++;
  return to;
}

void *memset(void *block, int byte, size_t count) {
  unsigned char *target = block;
  while (count-- > 0) *target++ = (unsigned char)byte;
  return block;
}

int memcmp(const void *left, const void *right, size_t count) {
  const unsigned char *a = left, *b = right;
  for (; count > 0; a++, b++, count--)
    if (*a != *b) return *a < *b ? -1 : 1;
  return 0;
}

size_t strlen(const char *text) {
  size_t length = 0;
  while (text[length] != '\0') length++;
  return length;
}
