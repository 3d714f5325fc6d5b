#include "ingest/decode/json_paths.h"

#include "base/check.h"
#include "base/mem.h"
#include "ingest/decode/json_pointer.h"

#include <stdlib.h>

const struct json_node json_nothing = {.path = JSON_NO_PATH,
                                       .word = JSON_NO_PATH / 64,
                                       .bit = 1,
                                       .offset = offsetof(struct json_found, values[JSON_NO_PATH])};

static void set_path(struct json_node *node, unsigned path)
{
    node->path = path;
    node->word = path / 64;
    node->bit = (uint64_t)1 << path % 64;
    node->offset = offsetof(struct json_found, values) + path * sizeof(struct json_value);
}

struct json_paths *json_paths_new(unsigned depth_max)
{
    struct json_paths *paths = xcalloc(1, sizeof *paths);
    paths->depth_max = depth_max;
    set_path(&paths->root, JSON_NO_PATH);
    return paths;
}

static void free_slots(struct json_node *node)
{
    for (size_t i = 0; node->slots != NULL && i < JSON_SLOTS; i++) {
        struct json_node *member = node->slots[i].node;
        if (member == NULL)
            continue;
        free_slots(member);
        free((char *)(uintptr_t)member->name.ptr);
        free(member);
    }
    free(node->slots);
}

void json_paths_free(struct json_paths *paths)
{
    if (paths == NULL)
        return;
    free_slots(&paths->root);
    for (size_t i = 0; i < paths->count; i++)
        free(paths->pointers[i]);
    free(paths);
}

static size_t next_slot(size_t i)
{
    return (i + 1) % JSON_SLOTS;
}

const struct json_node *json_node_find(const struct json_node *node, uint64_t word, struct slice name)
{
    for (size_t i = json_name_slot(word);; i = next_slot(i)) {
        const struct json_slot *s = &node->slots[i];
        if (s->node == NULL)
            return &json_nothing;
        if (s->word == word && slice_equal(s->node->name, name))
            return s->node;
    }
}

/* A pointer's name with ~0 and ~1 undone. Zeros follow it, so that its word can be read. */
static struct slice undo_tildes(struct slice name)
{
    char *out = xcalloc(1, name.len + sizeof(uint64_t));
    size_t len = 0;
    for (size_t i = 0; i < name.len; i++) {
        bool is_tilde = name.ptr[i] == '~';
        i += is_tilde;
        out[len++] = !is_tilde ? name.ptr[i] : name.ptr[i] == '0' ? '~' : '/';
    }
    return slice_of(out, len);
}

static struct json_node *find_or_add(struct json_node *node, struct slice written)
{
    struct slice name = undo_tildes(written);
    uint64_t word = name.len > 0 ? json_name_word(name.ptr, name.len) : 0;
    if (node->slots == NULL)
        node->slots = xcalloc(JSON_SLOTS, sizeof *node->slots);
    const struct json_node *found = json_node_find(node, word, name);
    if (found != &json_nothing) {
        free((char *)(uintptr_t)name.ptr);
        return (struct json_node *)(uintptr_t)found;
    }
    size_t i = json_name_slot(word);
    while (node->slots[i].node != NULL)
        i = next_slot(i);
    struct json_node *child = xcalloc(1, sizeof *child);
    set_path(child, JSON_NO_PATH);
    child->name = name;
    node->slots[i] = (struct json_slot){word, child};
    return child;
}

size_t json_paths_add(struct json_paths *paths, struct slice pointer)
{
    ASSERT(json_pointer_is_good(pointer));
    for (size_t i = 0; i < paths->count; i++) {
        if (slice_equal(pointer, slice_of(paths->pointers[i], paths->lengths[i])))
            return i;
    }
    ASSERT(paths->count < JSON_PATHS_MAX);
    size_t path = paths->count++;
    paths->pointers[path] = xstrndup(pointer.len > 0 ? pointer.ptr : "", pointer.len);
    paths->lengths[path] = pointer.len;
    struct json_node *node = &paths->root;
    while (pointer.len > 0) {
        node->below[path / 64] |= (uint64_t)1 << path % 64;
        node = find_or_add(node, json_pointer_take(&pointer));
    }
    set_path(node, (unsigned)path);
    return path;
}
