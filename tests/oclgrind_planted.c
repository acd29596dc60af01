/* SPDX-License-Identifier: MIT
 *
 * oclgrind_planted.c - kernels with deliberate bugs, for check_oclgrind.sh, which tests that they are
 * detected.  `oclgrind_planted CASE` runs one of them. */
#include <stdlib.h>
#include "gpu/driver.h"
#include "jit/parts.h"
#include "test.h"

static const struct { const char *name, *text; } cases[] = {
    {"clean",                           /* no race in any of these accesses */
     "    ATOMIC_ADD32(&x[0], 1u);\n"
     "    ATOMIC_ADD64((GLOBAL u64 *)x + 1, (u64)i);\n"
     "    ATOMIC_ADD_GLOBAL_F64((GLOBAL double *)x + 2, 1.0);\n"
     "    if (i == 0u) s[0] = 0;\n"
     "    if (i < 4u) shared_memory[2u + i] = 0;\n"
     "    BARRIER();\n"
     "    ATOMIC_CAS32(&s[0], 0u, i);\n"
     "    ATOMIC_CAS64(&shared_memory[2], (u64)0, (u64)i);\n"
     "    ATOMIC_ADD_F64((SHARED double *)&shared_memory[3], 1.0);\n"
     "    u32 seen = PEEK32(&s[0]) + (u32)PEEK64(&shared_memory[2]);\n"
     "    BARRIER();\n"
     "    x[64u + i + block_id() * 64u] = seen + s[0];\n"},
    {"race_global", "    x[10] = x[10] + i;\n"},
    {"race_equal", "    x[10] = 7u;\n"},
    {"race_shared", "    s[i] = i;\n    x[64u + i + block_id() * 64u] = s[63u - i];\n"},
    {"peek",                            /* plain read of a word that another thread changes atomically */
     "    s[i] = 0;\n    BARRIER();\n"
     "    ATOMIC_CAS32(&s[0], 0u, i + 1u);\n    x[64u + i + block_id() * 64u] = s[0];\n"},
    {"write_outside", "    if (i == 5u) x[1024] = 1u;\n"},
    {"read_outside", "    x[64u + i + block_id() * 64u] = x[i == 5u ? 1024u : i];\n"},
    {"shared_outside", "    if (i == 5u) s[64] = 1u;\n"},
    {"barrier", "    if (i < 8u) BARRIER();\n"},
    {"fails", ""},
};

int main(int argc, char **argv)
{
    const tl_driver *driver = &tl_driver_opencl;
    tl_base *b = NULL;
    tl_device *d = NULL;
    tl_module *module = NULL;
    tl_kernel *kernel = NULL;
    tl_image image = {0};
    uint64_t x = 0;
    static char text[65536];
    const tl_text *prelude = tl_texts;
    size_t i = 0, count = sizeof cases / sizeof *cases;
    while (i < count && (argc != 2 || strcmp(argv[1], cases[i].name) != 0)) i++;
    while (prelude->name && strcmp(prelude->name, "prelude_opencl") != 0) prelude++;
    if (i == count || !prelude->name) {
        printf("usage: oclgrind_planted CASE\n");
        return 2;
    }
    snprintf(text, sizeof text, "%.*s\nKERNEL(planted)(SHARED_ARG GLOBAL u32 *x)\n{\n    SHARED_MEMORY\n"
             "    SHARED u32 *s = (SHARED u32 *)shared_memory;\n    u32 i = thread_id();\n%s}\n",
             (int)prelude->bytes, (const char *)prelude->text, cases[i].text);
    if (tl_base_create(NULL, 1, sizeof *b, &b) != TULLE_OK) abort();
    tulle_status status = driver->open(b, 0, &d);
    if (status == TULLE_OK) {
        tl_compiler c = driver->compiler(d);
        status = c.compile(c.self, b, "planted", text, &image);
    }
    if (status == TULLE_OK) status = driver->load(b, d, &image, &module);
    if (status == TULLE_OK) status = driver->kernel(b, d, module, "planted", &kernel);
    if (status == TULLE_OK) status = driver->alloc(b, d, 4096, &x);
    if (status == TULLE_OK) status = driver->fill(b, d, (tl_dmem){x, 0}, 0, 4096);
    tl_arg arg = {.kind = TL_ARG_MEM, .as.mem = {x, 0}};
    if (status == TULLE_OK)
        status = driver->launch(b, d, kernel, &(tl_launch){.blocks = 2, .threads = 64, .shared = 256, .args = &arg,
                                                           .count = 1});
    if (status == TULLE_OK) status = driver->wait(b, d);
    if (status != TULLE_OK) printf("%s\n", b->error);
    tl_free(b, image.data);
    if (d) {
        driver->unload(d, module);
        driver->free(d, x);
        driver->close(d);
    }
    tl_base_free(b);
    return status != TULLE_OK || strcmp(cases[i].name, "fails") == 0;
}
