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
SLOTS = {"interactive": INTERACTIVE_SLOTS, "training": TRAINING_SLOTS}
THREADS = {
    "interactive": env.envint(
        "INTERACTIVE_THREADS", max(1, CORES // INTERACTIVE_SLOTS), low=1, high=256
    ),
    "training": env.envint("TRAINING_THREADS", max(1, CORES // TRAINING_SLOTS), low=1, high=256),
}
DEVICES = {
    "interactive": "cpu",
    "training": env.envchoice("TRAINING_DEVICE", "cpu", ("cpu", "cuda")),
}
JOB_MEMORY_MB = env.envint("JOB_MEMORY_MB", 4096, low=256, high=1_048_576)
RUNNER_MAX_JOBS = env.envint("RUNNER_MAX_JOBS", 200, low=1, high=1_000_000)
RUNNER_MAX_MB = env.envint("RUNNER_MAX_MB", 1024, low=128, high=1_048_576)
TRAINING_SPARES = env.envint("TRAINING_SPARES", 1, low=0, high=8)
LEASE_S = env.envint("LEASE_S", 15, low=3, high=600)
PARK_AFTER_S = env.envint("PARK_AFTER_S", 60, low=1, high=86_400)
STREAM_TTL_S = env.envint("STREAM_TTL_S", 3600, low=1, high=2_592_000)
STREAM_MAXLEN = env.envint("STREAM_MAXLEN", 50_000, low=100, high=10_000_000)

# Celery carries a job's id to a worker and nothing else: no results, no delays, early ack.
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "interactive"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.staticfiles",
    "ninja",
    "django_htmx",
    "csp",
    "playground.accounts",
    "playground.classroom",
    "playground.jobs",
    "playground.web",
    "playground.labs",
    "playground.up",
]
AUTH_USER_MODEL = "accounts.User"
MIDDLEWARE = [
    "playground.problems.problem_middleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "playground.web.languages.LanguageInAddress",
    "django.middleware.common.CommonMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "playground.one_thread.one_thread",  # last
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

LOG_LEVEL = env.envchoice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "asyncio": {"level": "WARNING"},
    },
}
