"""Settings, all from the environment; the helpers are in `playground.env`."""

from __future__ import annotations

import os
import re
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from playground import env, paths
from playground.web.csp import POLICY

BASE_DIR = Path(__file__).resolve().parent.parent
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version() -> str:
    match = re.search(r"^## (\S+)", (BASE_DIR / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    if match is None:
        raise ImproperlyConfigured("CHANGELOG.md has no '## version' heading.")
    return match.group(1)


VERSION = _version()
DEBUG = env.envbool("DEBUG", False)
VAR_DIR = env.envpath("VAR_DIR", BASE_DIR / "var")
PORT = env.envint("PORT", 8000, low=1, high=65535)

# Who is allowed in: local mode has one owner and no sign-in, and refuses everyone else.
SERVER_MODE = env.envbool("SERVER_MODE", False)
LOCAL_TOKEN = env.envbool("LOCAL_TOKEN", False)
LOCAL_TOKEN_FILE = VAR_DIR / "local-token"
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")

SECRET_KEY = env.envstr("SECRET_KEY")
if not SECRET_KEY:
    if SERVER_MODE:
        raise ImproperlyConfigured("SERVER_MODE=1 needs SECRET_KEY: 50 random characters.")
    SECRET_KEY = paths.secret(VAR_DIR / "secret-key")
if len(SECRET_KEY) < 32:
    raise ImproperlyConfigured("SECRET_KEY is too short; give at least 32 random characters.")

ALLOWED_HOSTS = list(LOCAL_HOSTS)
if SERVER_MODE:
    ALLOWED_HOSTS = [h for h in env.envstr("ALLOWED_HOSTS").replace(",", " ").split() if h]
    if not ALLOWED_HOSTS:
        raise ImproperlyConfigured("SERVER_MODE=1 needs ALLOWED_HOSTS: the names it serves.")
    ALLOWED_HOSTS += LOCAL_HOSTS  # for this machine's own checks

# Stores
DATABASES = {"default": env.database("DATABASE_URL", VAR_DIR / "playground.sqlite3")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = env.envstr("REDIS_URL")
REDIS_SOCKET: Path | None = None  # the private Redis, started by us
if not REDIS_URL:
    REDIS_SOCKET = paths.redis_socket(VAR_DIR)
    REDIS_URL = f"unix://{REDIS_SOCKET}"
if not REDIS_URL.startswith(("unix:///", "redis://", "rediss://")):
    raise ImproperlyConfigured(
        f"REDIS_URL is {REDIS_URL!r}; it must start with unix:///, redis:// or rediss://."
    )
ARTIFACTS_DIR = VAR_DIR / "artifacts"
SPOOL_DIR = VAR_DIR / "spool"
UPLOADS_DIR = VAR_DIR / "uploads"

# Jobs. A slot is one job at a time; the workers run with exactly as many threads.
INTERACTIVE_SLOTS = env.envint("INTERACTIVE_SLOTS", min(2, CORES), low=1, high=64)
TRAINING_SLOTS = env.envint("TRAINING_SLOTS", 1, low=1, high=64)
TRAINING_DEVICES = env.envdevices("TRAINING_DEVICES", "cpu")
if TRAINING_DEVICES != ["cpu"]:  # a CUDA device is one slot
    if env.envstr("TRAINING_SLOTS") and len(TRAINING_DEVICES) != TRAINING_SLOTS:
        raise ImproperlyConfigured(
            f"TRAINING_SLOTS is {TRAINING_SLOTS}, but TRAINING_DEVICES lists "
            f"{len(TRAINING_DEVICES)} devices with one slot each; leave TRAINING_SLOTS unset."
        )
    TRAINING_SLOTS = len(TRAINING_DEVICES)
SLOTS = {"interactive": INTERACTIVE_SLOTS, "training": TRAINING_SLOTS}
DEVICES = {  # of each slot
    "interactive": ["cpu"] * INTERACTIVE_SLOTS,
    "training": ["cpu"] * TRAINING_SLOTS if TRAINING_DEVICES == ["cpu"] else TRAINING_DEVICES,
}
THREADS = {
    "interactive": env.envint(
        "INTERACTIVE_THREADS", max(1, CORES // INTERACTIVE_SLOTS), low=1, high=256
    ),
    "training": env.envint("TRAINING_THREADS", max(1, CORES // TRAINING_SLOTS), low=1, high=256),
}
JOB_MEMORY_MB = env.envint("JOB_MEMORY_MB", 4096, low=256, high=1_048_576)
RUNNER_MAX_JOBS = env.envint("RUNNER_MAX_JOBS", 200, low=1, high=1_000_000)
RUNNER_MAX_MB = env.envint("RUNNER_MAX_MB", 1024, low=128, high=1_048_576)
TRAINING_SPARES = env.envint("TRAINING_SPARES", 1, low=0, high=8)
LEASE_S = env.envint("LEASE_S", 15, low=3, high=600)
PARK_AFTER_S = env.envint("PARK_AFTER_S", 60, low=1, high=86_400)
KEEP_INTERACTIVE_H = env.envint("KEEP_INTERACTIVE_H", 24, low=1, high=87_600)
KEEP_TRAINING_DAYS = env.envint("KEEP_TRAINING_DAYS", 0, low=0, high=3650)  # 0: for ever
STREAM_TTL_S = env.envint("STREAM_TTL_S", 3600, low=1, high=2_592_000)
COMPACT_AFTER_S = env.envint("COMPACT_AFTER_S", 600, low=0, high=2_592_000)
STREAM_MAXLEN = env.envint("STREAM_MAXLEN", 50_000, low=100, high=10_000_000)

# What one owner may ask for; 0 is no limit. Alone on one's own machine there is none.
RATE_SUBMIT = env.envint("RATE_SUBMIT", 120 if SERVER_MODE else 0, low=0, high=1_000_000)
RATE_READ = env.envint("RATE_READ", 3000 if SERVER_MODE else 0, low=0, high=10_000_000)
QUEUED_MAX = env.envint("QUEUED_MAX", 200 if SERVER_MODE else 0, low=0, high=1_000_000)
QUOTA_MB = env.envint("QUOTA_MB", 4096 if SERVER_MODE else 0, low=0, high=1_073_741_824)

# Celery carries a job's id to a worker and nothing else: no results, no delays, early ack.
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "interactive"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None

INSTALLED_APPS = [
    *(("django.contrib.admin", "django.contrib.messages") if SERVER_MODE else ()),
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "ninja",
    "django_htmx",
    "csp",
    "playground.accounts",
    "playground.classroom",
    "playground.jobs",
    "playground.web",
    "playground.labs",
    "playground.operations",
    "playground.up",
]
AUTH_USER_MODEL = "accounts.User"
ACCOUNTS = (  # local mode has no sign-in, so it asks for no session either
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "playground.accounts.middleware.SignInFirst",
)
LOGIN_URL = "/accounts/sign-in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/accounts/sign-in"
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
# A proxy in front ends TLS and says so; nothing it says counts unless it is there.
BEHIND_PROXY = env.envbool("BEHIND_PROXY", False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BEHIND_PROXY
if BEHIND_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
MIDDLEWARE = [
    "playground.problems.problem_middleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "playground.web.languages.LanguageInAddress",
    "django.middleware.common.CommonMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    *(ACCOUNTS if SERVER_MODE else ()),
    "playground.jobs.limits.middleware",
    "playground.one_thread.OneThread",  # last
]
ROOT_URLCONF = "playground.urls"
ASGI_APPLICATION = "playground.asgi.application"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                *(["django.contrib.messages.context_processors.messages"] if SERVER_MODE else []),
                "playground.web.context.page",
            ],
        },
    },
]

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "playground.web.finders.WheelFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    # Scripts import each other by bare specifiers through one import map, so no rewriting of
    # `import` statements, which gets `export * from` wrong.
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

CONTENT_SECURITY_POLICY = POLICY  # strict; pages with Plotly loosen styles alone
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576  # a job's params; files go through uploads

METRICS_TOKEN = env.envstr("METRICS_TOKEN")  # lets a scraper in, in server mode
if METRICS_TOKEN and len(METRICS_TOKEN) < 16:
    raise ImproperlyConfigured("METRICS_TOKEN is too short; give at least 16 random characters.")
LOG_LEVEL = env.envchoice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
LOG_FORMAT = env.envchoice("LOG_FORMAT", "line", ("line", "json"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"about": {"()": "playground.logs.About"}},
    "formatters": {
        "line": {"()": "playground.logs.Line"},
        "json": {"()": "playground.logs.Json"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
            "filters": ["about"],
        }
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "celery": {"level": "WARNING"},
        "kombu": {"level": "WARNING"},
        "asyncio": {"level": "WARNING"},
        # The server has set its own form for these by now.
        "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        "uvicorn.error": {"handlers": [], "level": "WARNING", "propagate": True},
        # Django's own handlers, on DEBUG's console and for mail, would be a second form.
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        # Said in the access log for writes, and refused reads are the client's own affair.
        "django.request": {"level": "ERROR"},
    },
}
