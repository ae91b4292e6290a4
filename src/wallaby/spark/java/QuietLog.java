package wallaby;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.Filter;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.filter.AbstractFilter;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkEnv$;
import org.apache.spark.SparkJobInfo;
import org.apache.spark.SparkStatusTracker;
import scala.Option;

/**
 * Keeps out of Spark's log what Spark says about the tasks of TaskManagers: a lost one is three messages and sixty lines
 * of stack traces, and the engine has said it in one.
 *
 * A message is about a TaskManager if it comes from the thread of its task, or if Spark's scheduler or its runner of
 * Python names its stage. Everything about other tasks stays, whichever logger it comes from, and so does everything
 * below a warning.
 *
 * Spark compiles this file in the driver with Janino; see PlanWriter.java for what that means.
 */
public class QuietLog extends AbstractFilter {
    private static final Pattern STAGE = Pattern.compile("\\bstage (\\d+)");
    private static final String OF_SPARK = "org.apache.spark.";
    private static final String OF_SCHEDULER = "org.apache.spark.scheduler.";
    private static final String OF_PYTHON = "org.apache.spark.api.python.";

    private final SparkContext context;
    private final SparkEnv environment;
    private final String tag;
    /** By the number of a stage: is it a TaskManager's? */
    private final Map stages = new ConcurrentHashMap();
    private LoggerConfig root;

    /** The jobs of TaskManagers have this tag. */
    public QuietLog(SparkContext context, String tag) {
        this.context = context;
        environment = context.env();
        this.tag = tag;
    }

    /** Begin. */
    public void install() {
        LoggerContext logging = (LoggerContext) LogManager.getContext(false);
        root = logging.getConfiguration().getRootLogger();
        start();
        root.addFilter(this);
    }

    /** Leave the log as it was. */
    public void remove() {
        root.removeFilter(this);
    }

    public Filter.Result filter(LogEvent event) {
        String name = event.getLoggerName();
        boolean looked = event.getLevel().isMoreSpecificThan(Level.WARN) && name != null && name.startsWith(OF_SPARK);
        if (!looked || isSucceeded()) {
            return Filter.Result.NEUTRAL;
        }
        boolean names = name.startsWith(OF_SCHEDULER) || name.startsWith(OF_PYTHON);
        boolean ours = isOurs(event.getThreadName()) || (names && isOurs(event.getMessage().getFormattedMessage()));
        return ours ? Filter.Result.DENY : Filter.Result.NEUTRAL;
    }

    /** Is there another context, in which stages have other numbers? */
    private boolean isSucceeded() {
        SparkEnv present = SparkEnv$.MODULE$.get();
        return present != null && present != environment;
    }

    private boolean isOurs(String text) {
        Matcher found = text == null ? null : STAGE.matcher(text);
        if (found == null || !found.find()) {
            return false;
        }
        Integer stage = Integer.valueOf(found.group(1));
        if (!stages.containsKey(stage)) {
            remember();
            stages.putIfAbsent(stage, Boolean.FALSE);
        }
        return ((Boolean) stages.get(stage)).booleanValue();
    }

    /** Note the stages of all TaskManagers so far: once Spark has stopped, it does not tell any more. */
    public void remember() {
        try {
            SparkStatusTracker tracker = context.statusTracker();
            int[] jobs = tracker.getJobIdsForTag(tag);
            for (int at = 0; at < jobs.length; at++) {
                Option job = tracker.getJobInfo(jobs[at]);
                int[] found = job.isDefined() ? ((SparkJobInfo) job.get()).stageIds() : new int[0];
                for (int stage = 0; stage < found.length; stage++) {
                    stages.put(Integer.valueOf(found[stage]), Boolean.TRUE);
                }
            }
        } catch (RuntimeException stopped) {
            return; // the context has ended, and its list of jobs with it
        }
    }
}
