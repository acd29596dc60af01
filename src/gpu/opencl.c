/* SPDX-License-Identifier: MIT
 *
 * opencl.c - opens the OpenCL library; lists its devices with their properties; names of error codes.
 *
 * Kernels add doubles and count in 64 bits with atomics, so a device without fp64 or without 64-bit atomics
 * is listed but not used. */
#include "gpu/opencl.h"
#include <stdio.h>
#include <string.h>

/* ---- the library */

static const tl_dl_entry functions[] = {
#define ENTRY(result, name, arguments) {"cl" #name, offsetof(tl_cl, name), false},
    TL_CL_FUNCTIONS(ENTRY)
#undef ENTRY
};

bool tl_cl_open(tl_cl *cl, char *why, size_t why_bytes)
{
    const char *own = tl_env("TULLE_LIBOPENCL");
    const char *const names[] = {own ? own : "libOpenCL.so.1", own ? NULL : "libOpenCL.so", NULL};
    *cl = (tl_cl){.library = tl_dl_open(names, why, why_bytes)};
    if (!cl->library) return false;
    return tl_dl_symbols(cl->library, functions, sizeof functions / sizeof *functions, cl, why, why_bytes);
}

void tl_cl_close(tl_cl *cl)
{
    tl_dl_close(cl->library);
    cl->library = NULL;
}

/* ---- devices */

static uint64_t number(const tl_cl *cl, cl_device_id id, uint32_t what)
{
    uint64_t value = 0;                 /* on little-endian hosts a 32-bit result fills the lower half */
    return cl->GetDeviceInfo(id, what, sizeof value, &value, NULL) == CL_SUCCESS ? value : 0;
}

/* 0: GPU, 1: accelerator, 2: CPU.  A simulator may call itself all three. */
static int rank_of(const tl_cl *cl, cl_device_id id)
{
    uint64_t type = number(cl, id, CL_DEVICE_TYPE);
    return type & CL_DEVICE_TYPE_GPU ? 0 : type & CL_DEVICE_TYPE_ACCELERATOR ? 1 : 2;
}

static int ask(const tl_cl *cl, tl_cl_device devices[TL_CL_DEVICES])
{
    cl_platform_id platforms[TL_CL_DEVICES];
    tl_cl_device all[TL_CL_DEVICES];
    uint32_t platform_count = 0;
    int found = 0, count = 0;
    if (cl->GetPlatformIDs(TL_CL_DEVICES, platforms, &platform_count) != CL_SUCCESS) return 0;
    if (platform_count > TL_CL_DEVICES) platform_count = TL_CL_DEVICES;
    for (uint32_t p = 0; p < platform_count; p++) {
        cl_device_id ids[TL_CL_DEVICES];
        uint32_t n = 0;
        if (cl->GetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, TL_CL_DEVICES, ids, &n) != CL_SUCCESS)
            continue;
        for (uint32_t i = 0; i < n && i < TL_CL_DEVICES && found < TL_CL_DEVICES; i++)
            all[found++] = (tl_cl_device){platforms[p], ids[i]};
    }
    for (int rank = 0; rank < 3; rank++)
        for (int i = 0; i < found; i++)
            if (rank_of(cl, all[i].id) == rank) devices[count++] = all[i];
    return count;
}

/* PoCL creates its devices at the first query, and returns them to a second thread before they are ready, so
 * queries of the threads of a process are serialized. */
int tl_cl_devices(const tl_cl *cl, tl_cl_device devices[TL_CL_DEVICES])
{
    static pthread_mutex_t tl_lock_devices = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&tl_lock_devices);
    int count = ask(cl, devices);
    pthread_mutex_unlock(&tl_lock_devices);
    return count;
}

/* ---- properties of a device */

/* Removes leading, trailing and repeated blanks. */
static char *tidy(char *words)
{
    char *to = words;
    for (const char *from = words; *from; from++)
        if (*from != ' ' || (to > words && to[-1] != ' ')) *to++ = *from;
    if (to > words && to[-1] == ' ') to--;
    *to = 0;
    return words;
}

/* A string property of the device, truncated if it does not fit. */
static void text(const tl_cl *cl, cl_device_id id, uint32_t what, char *to, size_t bytes)
{
    char all[1024] = "";
    if (cl->GetDeviceInfo(id, what, sizeof all - 1, all, NULL) != CL_SUCCESS) all[0] = 0;
    snprintf(to, bytes, "%s", tidy(all));
}

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0)) return true;
    return false;
}

/* "OpenCL C 1.2 PoCL" after "OpenCL C " is at least 1.2 */
static bool at_least_1_2(const char *version, const char *before)
{
    int major = 0, minor = 0;
    size_t n = strlen(before);
    if (strncmp(version, before, n) != 0 || sscanf(version + n, "%d.%d", &major, &minor) != 2) return false;
    return major > 1 || (major == 1 && minor >= 2);
}

static void find_why_not(const tl_cl *cl, cl_device_id id, const char *extensions, const tl_caps *caps,
                         char *why, size_t bytes)
{
    char version[128], language[128];
    text(cl, id, CL_DEVICE_VERSION, version, sizeof version);
    text(cl, id, CL_DEVICE_OPENCL_C_VERSION, language, sizeof language);
    uint64_t align = number(cl, id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    why[0] = 0;
    if (!number(cl, id, CL_DEVICE_AVAILABLE))
        snprintf(why, bytes, "the device says it is not available");
    else if (!number(cl, id, CL_DEVICE_COMPILER_AVAILABLE))
        snprintf(why, bytes, "it has no compiler");
    else if (!number(cl, id, CL_DEVICE_ENDIAN_LITTLE))
        snprintf(why, bytes, "it is not little endian");
    else if (!at_least_1_2(version, "OpenCL "))
        snprintf(why, bytes, "OpenCL 1.2 is needed, it has \"%s\"", version);
    else if (!at_least_1_2(language, "OpenCL C "))
        snprintf(why, bytes, "OpenCL C 1.2 is needed, it has \"%s\"", language);
    else if (!has_word(extensions, "cl_khr_fp64"))
        snprintf(why, bytes, "it has no double precision (cl_khr_fp64)");
    else if (!has_word(extensions, "cl_khr_int64_base_atomics")
             || !has_word(extensions, "cl_khr_int64_extended_atomics"))
        snprintf(why, bytes,
                 "it has no 64-bit atomics (cl_khr_int64_base_atomics, cl_khr_int64_extended_atomics)");
    else if (align > TL_ALIGN)
        snprintf(why, bytes, "parts of its memory start at multiples of %llu bytes, %d are needed",
                 (unsigned long long)align, TL_ALIGN);
    else if (caps->shared_block < 16u << 10)
        snprintf(why, bytes, "it has %u bytes of local memory, 16384 are needed", caps->shared_block);
}

tulle_status tl_cl_caps(tl_base *b, const tl_cl *cl, tl_cl_device device, tl_caps *caps)
{
    tulle_status status = TULLE_OK;
    cl_device_id id = device.id;
    char *extensions = NULL, version[1024] = "", driver[64];
    size_t bytes = 0;
    *caps = (tl_caps){.warp = 0};

    text(cl, id, CL_DEVICE_NAME, caps->name, sizeof caps->name);
    text(cl, id, CL_DRIVER_VERSION, driver, sizeof driver);
    cl->GetPlatformInfo(device.platform, CL_PLATFORM_VERSION, sizeof version - 1, version, NULL);
    version[strcspn(version, ",")] = 0; /* PoCL appends its build options */
    snprintf(caps->driver, sizeof caps->driver, "%.80s, driver %s", tidy(version), driver);

    cl->GetDeviceInfo(id, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes);
    TRY(tl_calloc(b, &extensions, (int64_t)bytes + 1, 1, "the extensions of a device"));
    cl->GetDeviceInfo(id, CL_DEVICE_EXTENSIONS, bytes, extensions, NULL);

    if (has_word(extensions, "cl_nv_device_attribute_query"))
        snprintf(caps->arch, sizeof caps->arch, "sm_%u%u",
                 (unsigned)number(cl, id, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV),
                 (unsigned)number(cl, id, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV));
    else
        text(cl, id, CL_DEVICE_VERSION, caps->arch, sizeof caps->arch);

    caps->cpu = (number(cl, id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
    caps->memory_bytes = number(cl, id, CL_DEVICE_GLOBAL_MEM_SIZE);
    caps->memory_free = caps->memory_bytes;             /* OpenCL does not report it */
    if (caps->cpu && tl_memory_free() < caps->memory_free) caps->memory_free = tl_memory_free();
    caps->shared_block = tl_least(number(cl, id, CL_DEVICE_LOCAL_MEM_SIZE), 256u << 10);
    caps->threads_block = tl_least(number(cl, id, CL_DEVICE_MAX_WORK_GROUP_SIZE), 1024);
    if (strncmp(caps->arch, "sm_", 3)
        == 0) { /* NVIDIA reserves some shared memory; and kernels without a size */
        caps->shared_block -= 1024;                     /* can only be launched with 256 threads, whatever the
                                                         * device reports */
        caps->threads_block = tl_least(caps->threads_block, 256);
    }
    caps->shared_processor = caps->shared_block;
    caps->processors = tl_least(number(cl, id, CL_DEVICE_MAX_COMPUTE_UNITS), 1u << 20);
    caps->threads_processor = caps->cpu ? caps->threads_block : 2048;
    find_why_not(cl, id, extensions, caps, caps->why_not, sizeof caps->why_not);
done:
    tl_free(b, extensions);
    return status;
}

/* ---- error codes */

static const struct { int code; const char *name;
} errors[] = {
    {0, "CL_SUCCESS"},
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {-8, "CL_MEM_COPY_OVERLAP"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-12, "CL_MAP_FAILURE"},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-15, "CL_COMPILE_PROGRAM_FAILURE"},
    {-16, "CL_LINKER_NOT_AVAILABLE"},
    {-17, "CL_LINK_PROGRAM_FAILURE"},
    {-30, "CL_INVALID_VALUE"},
    {-31, "CL_INVALID_DEVICE_TYPE"},
    {-32, "CL_INVALID_PLATFORM"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-35, "CL_INVALID_QUEUE_PROPERTIES"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-37, "CL_INVALID_HOST_PTR"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-42, "CL_INVALID_BINARY"},
    {-43, "CL_INVALID_BUILD_OPTIONS"},
    {-44, "CL_INVALID_PROGRAM"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-47, "CL_INVALID_KERNEL_DEFINITION"},
    {-48, "CL_INVALID_KERNEL"},
    {-49, "CL_INVALID_ARG_INDEX"},
    {-50, "CL_INVALID_ARG_VALUE"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-53, "CL_INVALID_WORK_DIMENSION"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-56, "CL_INVALID_GLOBAL_OFFSET"},
    {-57, "CL_INVALID_EVENT_WAIT_LIST"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-64, "CL_INVALID_PROPERTY"},
    {-66, "CL_INVALID_COMPILER_OPTIONS"},
    {-67, "CL_INVALID_LINKER_OPTIONS"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    {-9999, "an illegal read or write in a kernel"}, /* NVIDIA's */
};

const char *tl_cl_error(int code)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) return errors[i].name;
    return "an error without a name";
}

tulle_status tl_cl_check(tl_base *b, const tl_device *d, int code, const char *call, const char *what)
{
    if (code == CL_SUCCESS) return TULLE_OK;
    bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
    return tl_fail(b, memory ? TULLE_ENOMEM : TULLE_EDRIVER, "%s: %s failed on %s with %s (%d)", what, call,
                   d->caps.name, tl_cl_error(code), code);
}
