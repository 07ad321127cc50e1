/* Fields that their own worker writes and other threads look at: stores and loads that compile to
 * plain ones. The owner reads them as any other field. */
#ifndef JZI_BASE_PUBLISH_H
#define JZI_BASE_PUBLISH_H

#define JZI_PUBLISH(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)
#define JZI_PEEK(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
/* The same where an instruction counts: a plain assignment, which the compiler may pair with its
 * neighbours, and a plain addition, which is one instruction. An aligned word is never seen half,
 * and calls of user code follow; the sanitizer wants to be told. */
#if defined(__SANITIZE_THREAD__)
#define JZI_PUBLISH_HOT(field, value) JZI_PUBLISH(field, value)
#define JZI_PUBLISH_SUM(field, delta) JZI_PUBLISH(field, (field) + (delta))
#else
#define JZI_PUBLISH_HOT(field, value) ((field) = (value))
#define JZI_PUBLISH_SUM(field, delta) ((field) += (delta))
#endif
/* For what a pointer leads to: a thread that finds the pointer sees what was stored before. */
#define JZI_PUBLISH_READY(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)
#define JZI_PEEK_READY(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)

#endif
