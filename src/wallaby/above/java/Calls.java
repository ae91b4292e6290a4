package wallaby;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SQLExecution$;
import scala.runtime.AbstractFunction0;

/**
 * Calls Python from threads that Python did not start.
 *
 * Spark Connect gives each operation a thread of its own, and ends an operation by interrupting its thread. A thread that
 * waits for Python's answer reads a socket, which no interrupt ends. So another thread waits for Python; it has the same
 * active session, job tags and local properties. If the operation is interrupted, its jobs are cancelled, the query among
 * them, and Python answers soon.
 *
 * Python keeps a connection and a thread for each thread that calls it, even after that has ended. So the threads here
 * are used again, also for other threads of Spark's that come and go. A thread that works for Python calls Python itself.
 *
 * Spark compiles this file in the driver with Janino; see PlanWriter.java for what that means.
 */
public class Calls {
    private static final String PYTHON = "py4j.";
    private static final String CONNECT_TAG = "SparkConnect_OperationTag";
    private static final String TAGS = "spark.job.tags";
    private static final String WHY = "because its operation was interrupted";
    /** A query may begin its job after the others were cancelled. */
    private static final long AGAIN_MS = 200;
    private static final ExecutorService THREADS = Executors.newCachedThreadPool(new Daemons());

    public static Object apply(SparkContext context, Function python, Object argument) {
        return worksForPython() ? python.apply(argument) : elsewhere(context, new Call(python, null, argument, null));
    }

    public static Object apply(SparkContext context, BiFunction python, Object first, Object second) {
        return worksForPython() ? python.apply(first, second) : elsewhere(context, new Call(null, python, first, second));
    }

    private static boolean worksForPython() {
        StackTraceElement[] stack = Thread.currentThread().getStackTrace();
        for (int at = stack.length - 1; at >= 0; at--) { // a thread of Python's begins so
            if (stack[at].getClassName().startsWith(PYTHON)) {
                return true;
            }
        }
        return false;
    }

    private static Object elsewhere(SparkContext context, Call call) {
        SparkSession session = (SparkSession) SparkSession.active();
        CompletableFuture answer = SQLExecution$.MODULE$.withThreadLocalCaptured(session, THREADS, call);
        boolean isInterrupted = false;
        try {
            while (true) {
                try {
                    return isInterrupted ? answer.get(AGAIN_MS, TimeUnit.MILLISECONDS) : answer.get();
                } catch (InterruptedException interrupt) {
                    isInterrupted = true;
                    cancel(context);
                } catch (TimeoutException late) {
                    cancel(context);
                }
            }
        } catch (ExecutionException failure) {
            Throwable cause = failure.getCause();
            if (cause instanceof RuntimeException) {
                throw (RuntimeException) cause;
            }
            throw new IllegalStateException(cause);
        } finally {
            if (isInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Cancel the jobs of this thread's operation. */
    private static void cancel(SparkContext context) {
        String tags = context.getLocalProperty(TAGS);
        String[] each = tags == null ? new String[0] : tags.split(",");
        for (int at = 0; at < each.length; at++) {
            if (each[at].startsWith(CONNECT_TAG)) {
                context.cancelJobsWithTag(each[at], WHY);
            }
        }
    }

    public static class Call extends AbstractFunction0 {
        private final Function function;
        private final BiFunction ofTwo;
        private final Object first;
        private final Object second;

        public Call(Function function, BiFunction ofTwo, Object first, Object second) {
            this.function = function;
            this.ofTwo = ofTwo;
            this.first = first;
            this.second = second;
        }

        public Object apply() {
            return function == null ? ofTwo.apply(first, second) : function.apply(first);
        }
    }

    public static class Daemons implements ThreadFactory {
        public Thread newThread(Runnable work) {
            Thread made = new Thread(work, "wallaby-call");
            made.setDaemon(true);
            return made;
        }
    }
}
