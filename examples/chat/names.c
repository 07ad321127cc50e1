/* Names. The registry has them all: it knows that no two are the same, and forgets them when their
 * actor ends. */
#include "chat.h"

#include <jzx/registry.h>

#include <string.h>

int name_make(chat_name *out, char sign, const char *text)
{
    static const char fit[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t len = strlen(text);
    if (len == 0 || len > NAME_LONGEST || strspn(text, fit) != len) {
        return 0;
    }
    *out = (chat_name){{sign}};
    memcpy(out->text + 1, text, len);
    return 1;
}

chat_name name_of(jzx_loop *loop, jzx_actor_id id)
{
    chat_name name = {"@somebody"};
    jzx_name_info first;
    if (jzx_names_of(loop, id, &first, 1) > 0) {
        memcpy(name.text, first.name, sizeof name.text);
    }
    return name;
}
