/*
 * Kernels in plain C are compiled once for each lever, HS_TARGET says for which (CMakeLists.txt): the portable one, and
 * instruction sets with wider vectors. Sums have a fixed order and nothing is fused, so all of them give the same bits.
 * Whatever such a file gives to others is called HS_EXACT(name): hs_exact_name_portable and so on.
 */
#ifndef HS_CPU_EXACT_TARGET_H
#define HS_CPU_EXACT_TARGET_H

#ifndef HS_TARGET
#define HS_TARGET portable
#endif

#define HS_JOINED(name, target) hs_exact_##name##_##target
#define HS_JOIN(name, target) HS_JOINED(name, target)
#define HS_EXACT(name) HS_JOIN(name, HS_TARGET)

#endif
